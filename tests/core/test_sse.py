"""Events on bytes."""

import pytest

from pegmend.sse import comment, data_of_events, json_event


@pytest.mark.parametrize(
    ("stream", "data"),
    [
        (b"data: a\n\ndata:b\r\n\r\ndata:  c\r\r", [b"a", b"b", b" c"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b": comment\n\nevent: x\ndata: a\nid: 1\n\n\n\n", [b"a"]),
        (b"data: a\n\ndata: not whole\n", [b"a"]),
        ("data: \u2028 \u0085\n\n".encode(), ["\u2028 \u0085".encode()]),
        (b"", []),
    ],
)
def test_data_of_events(stream: bytes, data: list[bytes]) -> None:
    assert list(data_of_events(stream)) == data


def test_what_is_written_is_read_again() -> None:
    assert list(data_of_events(comment("a\n\ndata: b") + json_event({"x": "\n\n"}))) == [b'{"x":"\\n\\n"}']
