"""Finds JSON values in text that also holds prose: one pass, no recursion.

A value begins where `{` or `[` does and is read by JSON's grammar, never by counting braces or splitting at separators,
so that whatever stands inside its strings is just text. Only what a reader of tool calls needs is kept: objects with a
member that can name a call, and objects that were begun but do not parse.

When a value turns out to be no JSON, every container that is open at that place is none either, since they all fail at
the same character. That is why the scan goes on from the failure and never reads a character twice: the time is linear
for any text. Two liberties are taken with the grammar, as the engine's own parser takes them: raw control characters in
strings, and, one level up, text between values.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

NAME_KEYS = frozenset({"name", "function", "tool", "tool_name", "function_name", "recipient_name"})
"""Members whose value can name the tool."""

ARGUMENT_KEYS = frozenset({"parameters", "arguments", "args", "input", "tool_input"})
"""Members whose value can be the arguments. What stands inside them is data, never a call."""

LABEL_KEYS = frozenset({"type", "id"})
"""Members that a call may carry besides."""

MAX_DEPTH = 1000
"""Containers open at once. Deeper text is broken: JSON parsers of clients and engines give up near here as well."""

_CALL_KEYS = NAME_KEYS | ARGUMENT_KEYS
_KEYS = _CALL_KEYS | LABEL_KEYS
_WHITESPACE = re.compile(r"[ \t\r\n]*+")
_STRING_BODY = re.compile(r'"[^"\\]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\]*+)*+')
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null")
# What may be left of a text that was cut inside a token: part of a literal, a number or an escape.
_CUT_TOKEN = re.compile(r"(?:[a-z]{0,4}|[-+.eE0-9]{0,40}|\\(?:u[0-9a-fA-F]{0,3})?)\Z")
# A brace opens an object only before a key or its end, a bracket an array only before a container: prose and code with
# braces and brackets cost nothing.
_OPENING = re.compile(r'\{[ \t\r\n]*+(?:["}]|\Z)|\[[ \t\r\n]*+(?:\[|\{[ \t\r\n]*+(?:["}]|\Z))')


@dataclass(slots=True)
class Member:
    """The value of one member: its place in the text, and the object or array if one of interest stands there."""

    start: int
    end: int
    value: "JsonContainer | None"


@dataclass(slots=True)
class JsonObject:
    """An object that can be a call, or that holds such an object.

    `members` are those with one of the keys above, `size` counts all of them, `repeated` tells that a key stands
    twice. `inner` are the containers of interest below any other key.
    """

    start: int
    end: int = -1
    members: dict[str, Member] = field(default_factory=dict)
    size: int = 0
    repeated: bool = False
    inner: list["JsonContainer"] = field(default_factory=list)


@dataclass(slots=True)
class JsonArray:
    """An array that holds containers of interest (`items`); `others` counts its other elements."""

    start: int
    end: int = -1
    items: list["JsonContainer"] = field(default_factory=list)
    others: int = 0


JsonContainer = JsonObject | JsonArray


@dataclass(slots=True)
class BrokenObject:
    """An object that was begun and does not parse; `cut` where it is only the end of the text that came too early.

    `members` are those that were complete, `open_key` is the one whose value was being read.
    """

    start: int
    end: int
    cut: bool
    members: dict[str, Member]
    open_key: str | None


Found = JsonContainer | BrokenObject


def scan(text: str) -> Iterator[Found]:
    """Yield the values of interest that `text` holds at its outermost level, and the broken objects, in order."""
    position = 0
    while opening := _OPENING.search(text, position):
        found, position = _Value(text, opening.start()).read()
        yield from found


class _Frame:
    """A container that is still open."""

    __slots__ = ("container", "key")

    def __init__(self, container: JsonContainer) -> None:
        self.container = container
        self.key = ""


class _Failure(Exception):
    """The text from `position` on cannot continue the value."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class _Value:
    """The reading of one outermost value, with a stack of its own."""

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.position = start
        self.stack: list[_Frame] = []

    def read(self) -> tuple[list[Found], int]:
        """Return what was found and the place to go on from."""
        try:
            outermost = self._read()
        except _Failure as failure:
            return self._broken(failure.position), failure.position
        interesting = _is_interesting(outermost)
        return ([outermost] if interesting else []), self.position

    def _read(self) -> JsonContainer:
        while True:
            closed = self._read_until_closed()
            while True:
                self.stack.pop()
                if not self.stack:
                    return closed
                self._attach(closed.start, closed)
                if self._goes_on():
                    break
                closed = self._close()

    def _read_until_closed(self) -> JsonContainer:
        """Read values, and the beginnings of containers, until one container is complete."""
        text = self.text
        while True:
            start = self.position
            first = text[start : start + 1]
            if first == "{" or first == "[":
                if self._open(first):
                    return self._close()
                continue
            if first == '"':
                self.position = self._string_end(start)
            elif scalar := _SCALAR.match(text, start):
                self.position = scalar.end()
            else:
                raise _Failure(start)
            self._attach(start, None)
            if not self._goes_on():
                return self._close()

    def _open(self, bracket: str) -> bool:
        """Enter a container; whether it is empty."""
        if len(self.stack) == MAX_DEPTH:
            raise _Failure(self.position)
        is_object = bracket == "{"
        self.stack.append(_Frame(JsonObject(self.position) if is_object else JsonArray(self.position)))
        self.position += 1
        self._skip_whitespace()
        if self.text[self.position : self.position + 1] == ("}" if is_object else "]"):
            return True
        if is_object:
            self._read_key()
        return False

    def _close(self) -> JsonContainer:
        """Leave the innermost container at its closing bracket."""
        self.position += 1
        container = self.stack[-1].container
        container.end = self.position
        return container

    def _goes_on(self) -> bool:
        """After a value: whether another one follows in the same container. Otherwise its end is reached."""
        self._skip_whitespace()
        in_object = isinstance(self.stack[-1].container, JsonObject)
        following = self.text[self.position : self.position + 1]
        if following == ",":
            self.position += 1
            self._skip_whitespace()
            if in_object:
                self._read_key()
            return True
        if following == ("}" if in_object else "]"):
            return False
        raise _Failure(self.position)

    def _read_key(self) -> None:
        self.stack[-1].key = ""
        start = self.position
        if self.text[start : start + 1] != '"':
            raise _Failure(start)
        end = self._string_end(start)
        key = self.text[start + 1 : end - 1]
        if "\\" in key:
            key = json.loads(f'"{key}"', strict=False)
        self.position = end
        self._skip_whitespace()
        if self.text[self.position : self.position + 1] != ":":
            raise _Failure(self.position)
        self.position += 1
        self._skip_whitespace()
        self.stack[-1].key = key

    def _string_end(self, start: int) -> int:
        body = _STRING_BODY.match(self.text, start)
        assert body is not None  # the caller saw the quote
        end = body.end()
        if self.text[end : end + 1] != '"':
            raise _Failure(end)
        return end + 1

    def _skip_whitespace(self) -> None:
        space = _WHITESPACE.match(self.text, self.position)
        assert space is not None  # matches the empty string too
        self.position = space.end()

    def _attach(self, start: int, value: JsonContainer | None) -> None:
        """Put a complete value, which ends at the present position, into the innermost container."""
        frame = self.stack[-1]
        container = frame.container
        if value is not None and not _is_interesting(value):
            value = None
        if isinstance(container, JsonArray):
            if value is None:
                container.others += 1
            else:
                container.items.append(value)
            return
        container.size += 1
        if frame.key in _KEYS:
            container.repeated |= frame.key in container.members
            container.members[frame.key] = Member(start, self.position, value)
        elif value is not None:
            container.inner.append(value)

    def _broken(self, position: int) -> list[Found]:
        """What is left of a value that failed: complete elements of open arrays, and the outermost open object."""
        found: list[Found] = []
        for frame in self.stack:
            container = frame.container
            if isinstance(container, JsonArray):
                found.extend(container.items)
                continue
            cut = _CUT_TOKEN.match(self.text, position) is not None
            found.append(BrokenObject(container.start, position, cut, container.members, frame.key or None))
            break
        return found


def _is_interesting(container: JsonContainer) -> bool:
    if isinstance(container, JsonArray):
        return bool(container.items)
    return bool(container.inner) or not _CALL_KEYS.isdisjoint(container.members)
