"""Finds JSON values in text that also holds prose: one pass, no recursion.

A value begins where `{` or `[` does and is read by JSON's grammar, never by counting braces or splitting at separators,
so that whatever stands inside its strings is just text. Only what a reader of tool calls needs is kept: objects with a
member that can be the name or the arguments of a call, and objects that were begun but do not parse.

When a value turns out to be no JSON, every container that is open at that place is none either, since they all fail at
the same character. That is why the scan goes on from the failure and never reads a character twice: the time is linear
for any text. Two liberties are taken with the grammar, as the engine's own parser takes them: raw control characters in
strings, and, one level up, text between values.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

NAME_KEYS = frozenset({"name", "function", "tool", "tool_name", "function_name", "recipient_name", "action"})
"""Members whose value can name the tool."""

ARGUMENT_KEYS = frozenset(
    {"parameters", "arguments", "args", "kwargs", "params", "input", "tool_input", "tool_args", "action_input"}
)
"""Members whose value can be the arguments. What stands inside them is data, never a call."""

LABEL_KEYS = frozenset({"type", "id", "tool_call_id"})
"""Members that a call may carry besides."""

DEFINITION_KEYS = frozenset({"description"})
"""Members that tell of a definition of a tool."""

MAX_DEPTH = 1000
"""Containers open at once. Deeper text is broken: JSON parsers of clients and engines give up near here as well."""

OPENING = r"""\{ [ \t\r\n]*+ (?: ["}] | \Z) | \[ [ \t\r\n]*+ (?: \[ | \{ [ \t\r\n]*+ (?: ["}] | \Z))"""
"""Where a value may begin (a verbose regular expression): a brace opens an object only before a key or its end, a
bracket an array only before a container. Prose and code with braces and brackets cost nothing."""

_CALL_KEYS = NAME_KEYS | ARGUMENT_KEYS
_KEYS = _CALL_KEYS | LABEL_KEYS | DEFINITION_KEYS
_STRING_BODY = r'[^"\\]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\]*+)*+'
_STRING = re.compile(f'"{_STRING_BODY}"')
_KEY = re.compile(rf'"({_STRING_BODY})"[ \t\r\n]*+:[ \t\r\n]*+')
# As much of a key as there is: where a key fails, its end is the place of the failure.
_PART_OF_KEY = re.compile(rf'(?:"{_STRING_BODY}(?:"[ \t\r\n]*+)?)?')
_PART_OF_STRING = re.compile(f'"{_STRING_BODY}')
_AFTER_OPENING = re.compile(r"[{\[][ \t\r\n]*+")
_AFTER_VALUE = re.compile(r"[ \t\r\n]*+(?:([\]}])|,[ \t\r\n]*+)?")
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null")
# What may be left of a text that was cut inside a token: part of a literal, a number or an escape.
_CUT_TOKEN = re.compile(r"(?:[a-z]{0,4}|[-+.eE0-9]{0,40}|\\(?:u[0-9a-fA-F]{0,3})?)\Z")


@dataclass(slots=True)
class Member:
    """The value of one member: its place in the text, and the object or array if one of interest stands there."""

    start: int
    end: int
    value: "JsonContainer | None"


class JsonObject:
    """An object that can be a call, or that holds such an object.

    `members` are those with one of the keys above, `size` counts all of them, `repeated` tells that a key stands
    twice. `inner` are the containers of interest below any other key. `open_key` is the key of the latest value.
    """

    __slots__ = ("end", "inner", "members", "open_key", "repeated", "size", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = -1
        self.members: dict[str, Member] = {}
        self.size = 0
        self.repeated = False
        self.inner: list[JsonContainer] = []
        self.open_key: str | None = None


class JsonArray:
    """An array that holds containers of interest (`items`); `others` counts its other elements."""

    __slots__ = ("end", "items", "others", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = -1
        self.items: list[JsonContainer] = []
        self.others = 0


JsonContainer = JsonObject | JsonArray


@dataclass(slots=True)
class BrokenObject:
    """An object that was begun and does not parse; `cut` where it is only the end of the text that came too early.

    `opened` are the objects that were open, the outermost first, with their complete members; `inner` are the complete
    containers of interest in them.
    """

    start: int
    end: int
    cut: bool
    opened: list[JsonObject]
    inner: list["JsonContainer"]


Found = JsonContainer | BrokenObject


class BrokenValue(ValueError):
    """A value that does not parse beyond `position`; `is_cut` where only the end of the text came too early."""

    def __init__(self, position: int, *, is_cut: bool) -> None:
        super().__init__(f"no JSON at character {position}")
        self.position = position
        self.is_cut = is_cut


def values_at(text: str, start: int) -> tuple[list[Found], int]:
    """Return what there is of interest in the object or array that begins at `start`, and where to go on from."""
    return _Value(text, start).read()


def end_of_value(text: str, start: int) -> int:
    """Return where the object or array at `start` ends. Raises BrokenValue."""
    return _Value(text, start).end()


def members_of(written: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of a JSON object, decoded, and its values as they are written. The object has to parse."""
    inside = _AFTER_OPENING.match(written)
    assert inside is not None
    position = inside.end()
    while key := _KEY.match(written, position):
        start = key.end()
        scalar = (_STRING if written[start] == '"' else _SCALAR).match(written, start)
        end = scalar.end() if scalar else end_of_value(written, start)
        yield json.loads(f'"{key[1]}"', strict=False), written[start:end]
        after = _AFTER_VALUE.match(written, end)
        assert after is not None
        position = after.end()


class _Failure(Exception):
    """The text from `position` on cannot continue the value."""

    def __init__(self, position: int) -> None:
        self.position = position


class _Value:
    """The reading of one outermost value, with a stack of its own."""

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.position = start
        self.stack: list[JsonContainer] = []

    def read(self) -> tuple[list[Found], int]:
        """Return what was found and the place to go on from."""
        try:
            outermost = self._read()
        except _Failure as failure:
            return self._broken(failure.position), failure.position
        return ([outermost] if _is_interesting(outermost) else []), self.position

    def end(self) -> int:
        """Return where the value ends. Raises BrokenValue."""
        try:
            self._read()
        except _Failure as failure:
            is_cut = _CUT_TOKEN.match(self.text, failure.position) is not None
            raise BrokenValue(failure.position, is_cut=is_cut) from None
        return self.position

    def _read(self) -> JsonContainer:
        """Read up to the end of the outermost container."""
        text = self.text
        stack = self.stack
        while True:
            start = self.position
            first = text[start : start + 1]
            if first == "{" or first == "[":
                if not self._open(first):
                    continue
            elif string_or_scalar := (_STRING if first == '"' else _SCALAR).match(text, start):
                self.position = string_or_scalar.end()
                self._attach(start, None)
                if self._goes_on():
                    continue
            else:
                part = _PART_OF_STRING.match(text, start)
                raise _Failure(part.end() if part else start)
            while True:
                closed = stack.pop()
                closed.end = self.position
                if not stack:
                    return closed
                self._attach(closed.start, closed if _is_interesting(closed) else None)
                if self._goes_on():
                    break

    def _open(self, bracket: str) -> bool:
        """Enter a container; whether it is empty, and so at its end already."""
        if len(self.stack) == MAX_DEPTH:
            raise _Failure(self.position)
        is_object = bracket == "{"
        self.stack.append(JsonObject(self.position) if is_object else JsonArray(self.position))
        inside = _AFTER_OPENING.match(self.text, self.position)
        assert inside is not None
        self.position = inside.end()
        if self.text[self.position : self.position + 1] == ("}" if is_object else "]"):
            self.position += 1
            return True
        if is_object:
            self._read_key()
        return False

    def _goes_on(self) -> bool:
        """After a value: whether another one follows in the same container, whose end is reached otherwise."""
        after = _AFTER_VALUE.match(self.text, self.position)
        assert after is not None
        self.position = after.end()
        in_object = isinstance(self.stack[-1], JsonObject)
        if bracket := after[1]:
            if bracket != ("}" if in_object else "]"):
                raise _Failure(self.position - 1)
            return False
        if "," not in after[0]:
            raise _Failure(self.position)
        if in_object:
            self._read_key()
        return True

    def _read_key(self) -> None:
        innermost = self.stack[-1]
        assert isinstance(innermost, JsonObject)
        found = _KEY.match(self.text, self.position)
        if found is None:
            innermost.open_key = None
            part = _PART_OF_KEY.match(self.text, self.position)
            assert part is not None
            raise _Failure(part.end())
        key = found[1]
        innermost.open_key = json.loads(f'"{key}"', strict=False) if "\\" in key else key
        self.position = found.end()

    def _attach(self, start: int, value: JsonContainer | None) -> None:
        """Put a complete value, which ends at the present position, into the innermost container."""
        container = self.stack[-1]
        if isinstance(container, JsonArray):
            if value is None:
                container.others += 1
            else:
                container.items.append(value)
            return
        container.size += 1
        key = container.open_key
        if key in _KEYS:
            container.repeated |= key in container.members
            container.members[key] = Member(start, self.position, value)
        elif value is not None:
            container.inner.append(value)

    def _broken(self, position: int) -> list[Found]:
        """What is left of a value that failed: complete elements of open arrays, and the outermost open object."""
        found: list[Found] = []
        for depth, container in enumerate(self.stack):
            if isinstance(container, JsonArray):
                found.extend(container.items)
                continue
            cut = _CUT_TOKEN.match(self.text, position) is not None
            opened = [one for one in self.stack[depth:] if isinstance(one, JsonObject)]
            inner = [value for one in self.stack[depth:] for value in _values_in(one)]
            found.append(BrokenObject(container.start, position, cut, opened, inner))
            break
        return found


def _values_in(container: JsonContainer) -> list[JsonContainer]:
    """Return the containers of interest right below one."""
    if isinstance(container, JsonArray):
        return container.items
    return [*container.inner, *(member.value for member in container.members.values() if member.value)]


def _is_interesting(container: JsonContainer) -> bool:
    if isinstance(container, JsonArray):
        return bool(container.items)
    return bool(container.inner) or not _CALL_KEYS.isdisjoint(container.members)
