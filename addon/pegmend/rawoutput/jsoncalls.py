"""Reads tool calls that are plain JSON objects, alone or between the markers of many families (see `prose`).

A call is an object with `name` and `parameters` or `arguments`, alone, several with any or no separator between them,
in an array, in code fences or a list, with prose before, between and after. OpenAI's own wrapping
(`{"type": "function", "function": {...}}`) is taken too.
"""

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import orjson

from pegmend.errors import Ambiguous, TurnError, Undeclared, Unparseable
from pegmend.rawoutput.jsonscan import (
    ARGUMENT_KEYS,
    LABEL_KEYS,
    NAME_KEYS,
    BrokenObject,
    JsonArray,
    JsonContainer,
    JsonObject,
    Member,
    scan,
)
from pegmend.rawoutput.prose import remaining_prose
from pegmend.turn import ToolCall, Turn

_CALL_ARGUMENT_KEYS = ("parameters", "arguments")
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f]")
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
# Values of an array that is still open where a call begins.
_OPEN_ARRAY = re.compile(r"\[[^\[\]{}]*[^\[\]{}\s],\s*\Z")
_ARRAY_WINDOW = 200
# A call in the notation of Python or JavaScript is no JSON, but an attempt at a call all the same.
_OTHER_NOTATION = re.compile(r"\{\s*+['“]?(?:name|function|type|parameters|arguments)['”]?\s*+:")


def read(text: str, tools: Collection[str], *, truncated: bool = False) -> Turn:
    """Return the calls of `text` and the prose around them; see `rawoutput.read` for the rest."""
    reading = _Reading(text, tools)
    for found in scan(text):
        if isinstance(found, BrokenObject):
            reading.note_broken(found)
        else:
            reading.add(found)
    return reading.turn(truncated=truncated)


class _Problem(Exception):
    """Something that only looks like a call, and the error that it is if it stands where calls stand."""

    def __init__(self, kind: type[TurnError], message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


@dataclass(frozen=True, slots=True)
class _Shape:
    """An object that is shaped like a call: the name and the place of the arguments, if there are any."""

    name: str
    arguments: Member | None


class _Reading:
    """What has been read of one text so far."""

    def __init__(self, text: str, tools: Collection[str]) -> None:
        self.text = text
        self.tools = tools
        self.calls: list[ToolCall] = []
        self.spans: list[tuple[int, int]] = []
        # Each of these stands for all of its kind: hostile text can hold millions.
        self.doubt: TurnError | None = None
        self.first_broken: BrokenObject | None = None
        self.first_broken_call: BrokenObject | None = None
        self.last_broken: BrokenObject | None = None

    def add(self, value: JsonContainer) -> None:
        """Take one complete JSON value: its calls, or nothing where it is only text."""
        try:
            calls = self._calls_of(value)
        except _Problem as problem:
            raise self._error(problem.kind, problem.message) from None
        if calls:
            self.calls.extend(calls)
            self.spans.append((value.start, value.end))

    def note_broken(self, broken: BrokenObject) -> None:
        """Take an object that does not parse."""
        self.first_broken = self.first_broken or broken
        if self.first_broken_call is None and self._looks_like_call(broken):
            self.first_broken_call = broken
        self.last_broken = broken

    def turn(self, *, truncated: bool) -> Turn:
        """Return the turn, now that the whole text is read."""
        fragment = self._unfinished_call(truncated=truncated)
        if not self.calls:
            self._refuse_other_notation(self.text)
            return Turn(content=self.text)
        if self.doubt is not None:
            raise self.doubt
        if fragment is not None:
            self.spans.append((fragment, len(self.text)))
        prose = remaining_prose(self.text, self.spans)
        self._refuse_other_notation(prose)
        return Turn(tuple(self.calls), prose)

    def _calls_of(self, value: JsonContainer) -> list[ToolCall]:
        if isinstance(value, JsonArray):
            calls = [self._call(item) for item in value.items if isinstance(item, JsonObject)]
        else:
            self._refuse_open_array(value.start)
            calls = [self._call(value)]
        found = [call for call in calls if call is not None]
        if not found:
            self._refuse_calls_inside(value)
        elif isinstance(value, JsonArray) and len(found) < len(value.items) + value.others:
            raise _Problem(Ambiguous, "A JSON array holds tool calls and other values, so it may be data.")
        return found

    def _refuse_open_array(self, start: int) -> None:
        """Raise where other values of the same array stand before a call."""
        if _OPEN_ARRAY.search(self.text[max(0, start - _ARRAY_WINDOW) : start]):
            raise _Problem(Ambiguous, "A call stands behind other values of an array, so it may be data.")

    def _refuse_calls_inside(self, value: JsonContainer) -> None:
        """Raise where a call stands deep in a JSON value that is none itself: it may be a call or an example."""
        for inner in _objects_in(value):
            shape = self._shape(inner) if inner is not value else None
            if shape is not None and shape.name in self.tools:
                raise _Problem(Ambiguous, f"A call to {shape.name!r} stands inside a JSON value that is not a call.")

    def _call(self, value: JsonObject) -> ToolCall | None:
        """Return the call that this object is, None where it is just an object."""
        shape = self._shape(value)
        if shape is None:
            return None
        if shape.name in self.tools:
            self._refuse_calls_beside(value, shape)
            return ToolCall(shape.name, self._arguments(shape))
        undeclared = self._undeclared(shape.name)
        if shape.arguments is not None:
            raise undeclared
        self.doubt = self.doubt or undeclared
        return None

    def _refuse_calls_beside(self, value: JsonObject, shape: _Shape) -> None:
        """Raise where an object that is a call holds another one outside the arguments."""
        own = _wrapped(value) or value
        beside = [*value.inner, *own.inner]
        beside += [
            member.value
            for one in (value, own)
            for member in one.members.values()
            if member.value is not None and member.value is not own and member is not shape.arguments
        ]
        if any(map(self._holds_tool, beside)):
            raise _Problem(Ambiguous, f"A call to {shape.name!r} holds another call outside its arguments.")

    def _shape(self, value: JsonObject, *, is_wrapped: bool = False) -> _Shape | None:
        members = value.members
        arguments = [members[key] for key in _CALL_ARGUMENT_KEYS if key in members]
        wrapped = None if is_wrapped else _wrapped(value)
        if wrapped is not None:
            if not ARGUMENT_KEYS.isdisjoint(members) or value.repeated:
                raise _Problem(Ambiguous, "A wrapped call has its name or its arguments twice.")
            return self._shape(wrapped, is_wrapped=True)
        key = "name" if "name" in members else "function"
        name = self._name(value, key)
        if name is None:
            self._doubt_other_keys(value)
            return None
        if name in self.tools:
            if value.repeated or len(ARGUMENT_KEYS & members.keys()) > 1:
                raise _Problem(Ambiguous, f"A call to {name!r} has its name or its arguments twice.")
            if not arguments and value.size > 1 + len(LABEL_KEYS & members.keys()):
                raise _Problem(Ambiguous, f"An object names the tool {name!r} but has no arguments of its own.")
        return _Shape(name, arguments[0] if arguments else None)

    def _doubt_other_keys(self, value: JsonObject) -> None:
        """Note a declared tool under a key that no template of this family writes; with arguments, raise.

        Arguments without any name are noted too: beside calls they may be one whose name was lost.
        """
        if NAME_KEYS.isdisjoint(value.members) and not value.inner:
            self.doubt = self.doubt or self._error(Ambiguous, "An object has arguments but names no tool.")
        for key in sorted(NAME_KEYS & value.members.keys()):
            name = self._name(value, key)
            if name not in self.tools:
                continue
            problem = _Problem(Ambiguous, f"An object names the tool {name!r} by the key {key!r}.")
            if not ARGUMENT_KEYS.isdisjoint(value.members):
                raise problem
            self.doubt = self.doubt or self._error(problem.kind, problem.message)

    def _holds_tool(self, value: JsonContainer) -> bool:
        """Whether any object in a value names a declared tool."""
        return any(map(self._names_tool, _objects_in(value)))

    def _names_tool(self, value: JsonObject) -> bool:
        """Whether an object names a declared tool, by whatever key."""
        return any(self._name(value, key) in self.tools for key in NAME_KEYS)

    def _name(self, value: JsonObject, key: str) -> str | None:
        member = value.members.get(key)
        if member is None or self.text[member.start] != '"':
            return None
        return _decoded(self.text[member.start : member.end])

    def _arguments(self, shape: _Shape) -> str:
        """Return the arguments as the text of a JSON object: the model's own, where that is one."""
        if shape.arguments is None:
            return "{}"
        written = self.text[shape.arguments.start : shape.arguments.end]
        if written == "null":
            return "{}"
        if written[0] == "{":
            if _is_schema(written):
                raise _Problem(Ambiguous, f"What may be a call to {shape.name!r} may be its definition as well.")
            return escaped_controls(written)
        if written[0] == '"' and (unwrapped := _object_in_string(written)) is not None:
            return unwrapped
        raise _Problem(Unparseable, f"The arguments of a call to {shape.name!r} are not a JSON object.")

    def _unfinished_call(self, *, truncated: bool) -> int | None:
        """Return where a call begins that the engine cut. Raises for any other broken call."""
        # Beside calls any broken object may be one; in a text without calls it has to look like one.
        broken = self.first_broken if self.calls else self.first_broken_call
        if broken is None:
            return None
        if broken.cut and truncated and broken is self.last_broken:
            return broken.start
        how = "ends before it is complete" if broken.cut else f"is not valid JSON at character {broken.end}"
        raise self._error(Unparseable, f"A tool call that begins at character {broken.start} {how}.")

    def _looks_like_call(self, broken: BrokenObject) -> bool:
        """Whether an object that does not parse was going to be a call, or to hold one, in a text without calls."""
        opens_call = any(self._opens_call(one, cut=broken.cut) for one in broken.opened)
        return opens_call or any(map(self._holds_tool, broken.inner))

    def _opens_call(self, opened: JsonObject, *, cut: bool) -> bool:
        if opened.open_key in ARGUMENT_KEYS or not ARGUMENT_KEYS.isdisjoint(opened.members):
            return True
        if self._names_tool(opened):
            return True
        return cut and opened.open_key in NAME_KEYS

    def _refuse_other_notation(self, prose: str) -> None:
        """Raise where the text outside JSON names a declared tool in the manner of a call."""
        declared = re.compile(rf"\W(?:{'|'.join(map(re.escape, self.tools))})\W")
        for attempt in _OTHER_NOTATION.finditer(prose):
            if declared.search(prose, attempt.end(), attempt.end() + 200):
                raise self._error(Unparseable, "Something like a tool call is not valid JSON.")

    def _undeclared(self, name: str) -> TurnError:
        declared = ", ".join(sorted(self.tools)[:20])
        return self._error(
            Undeclared, f"The model called {name!r}, which the request does not allow it to call (allowed: {declared})."
        )

    def _error(self, kind: type[TurnError], what: str) -> TurnError:
        message = f"{what} None of the calls is delivered. The model's text stands in raw_output."
        return kind(message, raw_output=self.text, calls=self.calls)


def _wrapped(value: JsonObject) -> JsonObject | None:
    """Return the call that an object in OpenAI's manner wraps, None where it is no such object."""
    function = value.members.get("function")
    if function is None or "name" in value.members or not isinstance(function.value, JsonObject):
        return None
    return function.value


def _objects_in(value: JsonContainer) -> Iterator[JsonObject]:
    """Yield every object of interest in `value`, itself included."""
    waiting = [value]
    while waiting:
        container = waiting.pop()
        if isinstance(container, JsonArray):
            waiting.extend(container.items)
            continue
        yield container
        waiting.extend(container.inner)
        waiting.extend(member.value for member in container.members.values() if member.value is not None)


def _is_schema(arguments: str) -> bool:
    """Whether arguments are a JSON schema of an object: what stands there in the definition of a tool."""
    if '"properties"' not in arguments:
        return False
    value = json.loads(arguments, strict=False)
    return value.get("type") == "object" and isinstance(value.get("properties"), dict)


def _decoded(string: str) -> str:
    """Return the text of a JSON string that may hold raw control characters."""
    text: str = json.loads(string, strict=False)
    return text


def escaped_controls(written: str) -> str:
    """Return JSON in which control characters in strings, which the engine lets pass, are escaped.

    The text may end amid a string.
    """
    if not _CONTROL_CHARACTER.search(written):
        return written
    return _STRING.sub(lambda string: _CONTROL_CHARACTER.sub(_escape, string.group()), written)


def _escape(control: re.Match[str]) -> str:
    return json.dumps(control.group())[1:-1]


def _object_in_string(string: str) -> str | None:
    """Return the JSON object that a JSON string holds, None where it holds something else."""
    text = _decoded(string).strip()
    if not text:
        return "{}"
    try:
        value = orjson.loads(text)  # strict: no NaN, no half of a surrogate pair that no body can hold
    except orjson.JSONDecodeError:
        return None
    return text if isinstance(value, dict) else None
