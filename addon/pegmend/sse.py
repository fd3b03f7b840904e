"""Server-sent events on bytes: finding the data of each event, writing one.

Lines end in LF, CR LF or CR, and in nothing else: U+2028 stands inside JSON unescaped and is no line end.
"""

import re
from collections.abc import Iterator

import orjson

DONE = b"data: [DONE]\n\n"
"""The last event of a chat completion stream."""

_LINE_END = re.compile(rb"\r\n|\n|\r")


def data_of_events(stream: bytes) -> Iterator[bytes]:
    """Yield the data of each whole event in `stream`; comments, other fields and an event without end are left out."""
    data: list[bytes] = []
    start = 0
    for line_end in _LINE_END.finditer(stream):
        line = stream[start : line_end.start()]
        start = line_end.end()
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            yield b"\n".join(data)
            data = []


def json_event(value: object) -> bytes:
    """Return the event whose data is `value` as JSON."""
    return b"data: %b\n\n" % orjson.dumps(value)


def comment(text: str) -> bytes:
    """Return a comment, which readers of the stream skip."""
    return b": %b\n\n" % " ".join(text.split()).encode()
