r"""Reads the engine's log: bytes in any pieces -> an entry for each failure.

The engine writes two entries about a failure, the second one only at debug verbosity:

    W common_chat_peg_parse: unparsed peg-native output: REMAINDER
    D common_chat_peg_parse: full peg-native output triggering error:
    === BEGIN ===
    GENERATION PROMPT AND TEXT
    === END ===

REMAINDER is what follows the part of the text that the parser took, however many lines it has. Lines come bare, without
the time, or behind prefixes: a time in brackets, a process in brackets, a container's name and a bar, or as the quoted
message of a Go slog record. The prefix of an entry's first line stands before each of its lines, and lines with another
one belong to others.

All of it is untrusted: the model's text stands in the log unescaped, and may hold lines that look like the engine's. An
entry ends at the first line that does; where more text follows that can only be the model's, the entry is not certain.
Nor is it where the times of the lines go back: the model does not know the engine's clock, so that a line of its making
is ahead of the next real one or behind the last.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

LINE_LIMIT = 8 * 1024 * 1024
"""Bytes of one line. What is longer is dropped, and with it the certainty of the entry."""

ENTRY_LIMIT = 16 * 1024 * 1024
"""Characters of one entry; likewise."""

_WRITER_LIMIT = 16

_COLOR = r"(?:\x1b\[[0-9;]*m)*"
_CLOCK = r"\[\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)\]\ "
_PREFIX = re.compile(
    rf"""
      (?P<container> [A-Za-z0-9][\w.-]*\ *\|\  )?  # docker compose: name-1  |
      (?P<clock> {_CLOCK} )?                       # [2026-11-30T15:36:02.123456789Z]
      (?P<process> \[\d{{1,7}}\]\  )?              # [56885]
    """,
    re.VERBOSE,
)
_SLOG = re.compile(r'time=\S+ level=\S+ msg=("(?:[^"\\]|\\.)*+"|[^\s"]*)(.*)')
_GO_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))")
_GO_CHARACTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

# Minutes, seconds, milliseconds, microseconds since the engine's start.
_CLOCK_STAMP = r"\d{1,6}\.\d\d\.\d{3}\.\d{3} "
_STAMP = rf"{_COLOR}(?:{_CLOCK_STAMP})?"
_STAMPED = re.compile(_COLOR + _CLOCK_STAMP)
_CLOCK_SLACK = 0.1
# Lines of the engine begin with the level and one of its modules; "I note: ..." is the model's.
_MODULE = r"(?:srv|slot|que|res|main|init|load|print|reset|sched|system|update|common_|llama_|ggml_|clip_|mtmd_)\w*"
_ENGINE_LINE = re.compile(rf"{_STAMP}[DIWE] {_COLOR}{_MODULE}[^:{{}}\"]{{0,60}}: ")
_REMAINDER = re.compile(rf"{_STAMP}W common_chat_peg_parse: unparsed (\S+) output: (.*)", re.DOTALL)
_FULL = re.compile(rf"{_STAMP}D common_chat_peg_parse: full \S+ output triggering error:")
_BEGIN, _END = "=== BEGIN ===", "=== END ==="
# What the engine writes when the request is over: no text of the model follows it.
_END_LINES_LIMIT = 100
_OVER = re.compile(r"(?:stop: cancel task, id_task = \d+\s*\Z|got exception: \{)")

# The headers that templates write before an answer. In the full text one of them stands before the model's words.
_GENERATION_PROMPT = re.compile(
    r"""\s*(?:
        <\|start_header_id\|>assistant<\|end_header_id\|>\s*
      | <\|im_start\|>assistant\n | <\|im_assistant\|>assistant<\|im_middle\|> | <\|?start_of_turn\|?>model\n
      | <\|turn>model\n | <\|assistant\|>\n? | <assistant>\n? | <｜Assistant｜>
      | <\|start_of_role\|>assistant<\|end_of_role\|> | <\|START_OF_TURN_TOKEN\|><\|CHATBOT_TOKEN\|>
    )""",
    re.VERBOSE,
)


@dataclass(slots=True, eq=False)
class FailureEntry:
    """What the log says about one failure.

    `remainder` is the end of the model's text, `full` the whole text without the generation prompt, where that was
    logged. `is_certain` becomes false where the entry may have lost some of its text. `stamp` is the time on the
    engine's own clock, in seconds, None where the line has none.
    """

    format: str
    remainder: str
    full: str | None = None
    is_certain: bool = True
    stamp: float | None = None

    def ends(self, text: str) -> bool:
        """Whether a text ends with what was logged; line ends are not kept by every form of the log."""
        return text.replace("\r", "").rstrip().endswith(self.remainder.replace("\r", "").rstrip())


class EngineLog:
    """An incremental reader; the pieces may be cut anywhere."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._is_skipping = False
        self._writers: dict[str, _Writer] = {}

    def feed(self, data: bytes) -> list[FailureEntry]:
        """Take the next bytes and return the entries that are complete with them."""
        entries: list[FailureEntry] = []
        first, *others = data.split(b"\n")
        self._extend(first)
        for piece in others:
            if not self._is_skipping:
                self._take_line(bytes(self._line), entries)
            self._line.clear()
            self._is_skipping = False
            self._extend(piece)
        return entries

    def _extend(self, piece: bytes) -> None:
        self._line += piece
        if len(self._line) > LINE_LIMIT:
            self._line.clear()
            self._is_skipping = True
            self._doubt_all()

    def _doubt_all(self) -> None:
        for writer in self._writers.values():
            writer.doubt()

    def _take_line(self, raw: bytes, entries: list[FailureEntry]) -> None:
        line = raw.decode("utf-8", "replace").removesuffix("\r")
        writer, texts = self._writer_of(line)
        for text in texts:
            writer.take(text, entries)
        if "\ufffd" in line and not _is_utf8(raw):
            writer.doubt()
        if writer.is_busy:
            self._writers[writer.prefix] = writer
            if len(self._writers) > _WRITER_LIMIT:
                del self._writers[next(iter(self._writers))]

    def _writer_of(self, line: str) -> tuple["_Writer", list[str]]:
        """Return who wrote a physical line, and the engine's lines in it."""
        for writer in self._writers.values():
            texts = writer.texts_of(line)
            if texts is not None:
                return writer, texts
        writer = _Writer.of_line(line)
        if line and not writer.prefix:
            self._doubt_all()  # each line of an entry has the prefix of the first: this one may have lost it
        return writer, writer.texts_of(line) or []


class _Writer:
    """What has been read of the lines behind one prefix."""

    def __init__(self, prefix: str, pattern: re.Pattern[str]) -> None:
        self.prefix = prefix
        self._pattern = pattern
        self._is_slog = pattern is _SLOG
        self._latest: FailureEntry | None = None
        self._remainder: list[str] | None = None
        self._full: list[str] | None = None
        self._is_behind_full = False
        self._clock = 0.0
        self._begin("", "")

    @classmethod
    def of_line(cls, line: str) -> "_Writer":
        """Return the writer that a line shows by its prefix."""
        if slog := _SLOG.match(line):
            return cls(f"slog{slog[2]}", _SLOG)
        found = _PREFIX.match(line)
        assert found is not None  # each part may be missing
        pattern = re.escape(found["container"] or "")
        pattern += _CLOCK if found["clock"] else ""
        pattern += re.escape(found["process"] or "")
        return cls(pattern, re.compile(pattern))

    def texts_of(self, line: str) -> list[str] | None:
        """Return the engine's lines in a physical line, None where it is another writer's."""
        found = self._pattern.match(line)
        if found is None:
            return None
        if not self._is_slog:
            return [line[found.end() :]]
        if f"slog{found[2]}" != self.prefix:
            return None
        message = found[1]
        return _go_unquoted(message).split("\n") if message.startswith('"') else [message]

    @property
    def is_busy(self) -> bool:
        """Whether later lines matter to an entry of this writer."""
        return self._remainder is not None or self._latest is not None

    def doubt(self) -> None:
        """Take the certainty from the present entry."""
        self._is_certain = False

    def take(self, text: str, entries: list[FailureEntry]) -> None:
        """Take one line; a complete entry is added to `entries`."""
        if self._full is not None:
            self._take_full(text, entries)
            return
        self._check_clock(text)
        if start := _REMAINDER.match(text):
            self._finish(entries)
            self._begin(start[1], start[2], _seconds(_STAMPED.match(text)))
        elif self._remainder is None:
            self._doubt_latest(text)
        elif _FULL.match(text) and _has_time(text, self._stamp):
            self._is_collecting = False
            self._full = []
        elif _is_the_engines(text, self._stamp):
            self._is_collecting = False
            if _OVER.search(text):
                self._finish(entries)
            elif '{"' in text:
                self.doubt()  # the engine writes no calls there
        elif self._is_collecting and not _STAMPED.match(text):
            self._collect(self._remainder, text)
        else:
            self.doubt()  # text of the model after, or in the guise of, a line of the engine

    def _check_clock(self, text: str) -> None:
        """Where the time goes back, one of the two lines is the model's, who wrote it into this entry or the latest."""
        time = _seconds(_STAMPED.match(text))
        if time is None:
            return
        if time < self._clock - _CLOCK_SLACK:
            self.doubt()
            if self._latest is not None:
                self._latest.is_certain = False
        self._clock = time

    def _begin(self, format_name: str, first: str, stamp: float | None = None) -> None:
        self._format = format_name
        self._remainder = [first] if format_name else None
        self._full = None
        self._size = len(first)
        self._stamp = stamp
        self._end_lines = 0
        self._is_certain = True
        self._is_collecting = True

    def _collect(self, lines: list[str], text: str) -> None:
        self._size += len(text) + 1
        if self._size > ENTRY_LIMIT:
            self.doubt()
        else:
            lines.append(text)

    def _take_full(self, text: str, entries: list[FailureEntry]) -> None:
        assert self._full is not None
        assert self._remainder is not None
        self._end_lines += text == _END
        if self._end_lines > _END_LINES_LIMIT:
            self.doubt()
        elif text == _END and _ends_with(self._full, self._remainder):
            self._finish(entries)
            self._is_behind_full = True
        elif self._full or text != _BEGIN:
            self._collect(self._full, text)
        if not self._is_certain:
            self._full = None

    def _finish(self, entries: list[FailureEntry]) -> None:
        if self._remainder is None:
            return
        full = _without_generation_prompt("\n".join(self._full)) if self._full else None
        self._latest = FailureEntry(self._format, "\n".join(self._remainder), full, self._is_certain, self._stamp)
        entries.append(self._latest)
        self._begin("", "")

    def _doubt_latest(self, text: str) -> None:
        """After an entry: text that is no log line was the model's, and belonged to it.

        At debug verbosity the engine logs other texts of several lines, but none of them right behind a whole text.
        """
        is_behind_full, self._is_behind_full = self._is_behind_full, False
        if self._latest is None or _is_the_engines(text, self._latest.stamp):
            return
        if is_behind_full or (text and self._latest.full is None):
            self._latest.is_certain = False


def _is_the_engines(text: str, stamp: float | None) -> bool:
    """Whether a line is the engine's and not the model's, in or behind an entry with that stamp."""
    return _ENGINE_LINE.match(text) is not None and _has_time(text, stamp)


def _has_time(text: str, stamp: float | None) -> bool:
    """Whether a line has a time where its entry has one."""
    return stamp is None or _STAMPED.match(text) is not None


def _ends_with(lines: list[str], end: list[str]) -> bool:
    """Whether a text ends with another one, both given in lines."""
    if len(lines) < len(end):
        return False
    pairs: Iterator[tuple[str, str]] = zip(reversed(lines), reversed(end), strict=False)
    return all(
        line == wanted or (number == len(end) and line.endswith(wanted))
        for number, (line, wanted) in enumerate(pairs, 1)
    )


def _without_generation_prompt(text: str) -> str | None:
    """Return the model's own words in a full text, None where it is unknown where they begin."""
    found = _GENERATION_PROMPT.match(text)
    return text[found.end() :] if found else None


def _seconds(stamped: re.Match[str] | None) -> float | None:
    if stamped is None:
        return None
    minutes, seconds, milliseconds, microseconds = map(int, re.findall(r"\d+", stamped.group())[-4:])
    return minutes * 60 + seconds + milliseconds / 1e3 + microseconds / 1e6


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _go_unquoted(quoted: str) -> str:
    return _GO_ESCAPE.sub(_go_character, quoted[1:-1])


def _go_character(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code is None:
        return _GO_CHARACTERS.get(escape[4], escape[4])
    number = int(code, 16)
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
