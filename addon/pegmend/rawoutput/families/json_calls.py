"""Reads tool calls that are plain JSON objects, alone or between the markers of many families (see `prose`).

A call is an object with `name` and `parameters` or `arguments`, alone, several with any or no separator between them,
in an array, in code fences or a list, with prose before, between and after. OpenAI's own wrapping
(`{"type": "function", "function": {...}}`) is taken too.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from pegmend.errors import Ambiguous, Unparseable
from pegmend.rawoutput.cursor import Cursor, Cut, Malformed
from pegmend.rawoutput.family import (
    Broken,
    Family,
    Output,
    Piece,
    Problem,
    Reader,
    Section,
    Tools,
    undeclared,
)
from pegmend.rawoutput.jsonscan import (
    ARGUMENT_KEYS,
    DEFINITION_KEYS,
    LABEL_KEYS,
    NAME_KEYS,
    OPENING,
    BrokenObject,
    JsonArray,
    JsonContainer,
    JsonObject,
    Member,
    values_at,
)
from pegmend.rawoutput.tools import declares, properties_of
from pegmend.rawoutput.values import escaped_controls, is_strict_json
from pegmend.turn import ToolCall

_CALL_ARGUMENT_KEYS = ("parameters", "arguments")
# Of an object without a name these keys tell that it may be a call; the others are common in data.
_NAMELESS_KEYS = ARGUMENT_KEYS - {"params", "kwargs", "tool_args"}
# Values of an array that is still open where a call begins.
_OPEN_ARRAY = re.compile(r"\[[^\[\]{}]*[^\[\]{}\s],\s*\Z")
_ARRAY_WINDOW = 200
# Code right before a value: an assignment, an argument, a string of a shell, a comment.
_CODE = re.compile(r"(?:[\w)\]][ \t]*[=(]|\s['\"]|//)[ \t]*\Z")
_CODE_WINDOW = 40
_NAME_WINDOW = 300
_KEYS_WINDOW = 300
_CALL_TYPES = frozenset({"function", "function_call", "tool", "tool_call", "tool_use"})
_EMPTY_ARRAY = re.compile(r"\[\s*+\]")


def _reader(output: Output) -> Reader:
    return _Objects(output.text, output.tools).section


FAMILY = Family("json", OPENING, _reader)


@dataclass(frozen=True, slots=True)
class _Shape:
    """An object that is shaped like a call: the name and the place of the arguments, if there are any."""

    name: str
    arguments: Member | None


class _Objects:
    """The JSON values of one text."""

    def __init__(self, text: str, tools: Tools) -> None:
        self.text = text
        self.tools = tools
        names = "|".join(map(re.escape, tools))
        self.quoted_name = re.compile(f'"(?:{names})"')
        # Stands for all of its kind: hostile text can hold millions.
        self.doubt: Problem | None = None

    def section(self, start: int) -> Section:
        """Return the calls of the value at `start`, which is just text where it holds none."""
        found, end = values_at(self.text, start)
        pieces = []
        broken = None
        for one in found:
            if isinstance(one, BrokenObject):
                broken = Broken(one.start, one.end, one.cut, self._looks_like_call(one))
            elif calls := self._calls_of(one):
                pieces.append(Piece(one.start, one.end, tuple(calls), is_loose=True))
        return Section(end, tuple(pieces), broken, self.doubt)

    def _calls_of(self, value: JsonContainer) -> list[ToolCall]:
        if isinstance(value, JsonArray):
            calls = [self._call(item) for item in value.items if isinstance(item, JsonObject)]
        else:
            self._refuse_open_array(value.start)
            calls = [self._call(value)]
        found = [call for call in calls if call is not None]
        if found and _CODE.search(self.text, max(0, value.start - _CODE_WINDOW), value.start):
            raise Problem(Ambiguous, "A call stands amid program code, which may be all that was meant.")
        if not found:
            self._refuse_calls_inside(value)
        elif isinstance(value, JsonArray) and len(found) < len(value.items) + value.others:
            raise Problem(Ambiguous, "A JSON array holds tool calls and other values, so it may be data.")
        return found

    def _refuse_open_array(self, start: int) -> None:
        """Raise where other values of the same array stand before a call."""
        if _OPEN_ARRAY.search(self.text[max(0, start - _ARRAY_WINDOW) : start]):
            raise Problem(Ambiguous, "A call stands behind other values of an array, so it may be data.")

    def _refuse_calls_inside(self, value: JsonContainer) -> None:
        """Raise where a call stands deep in a JSON value that is none itself: it may be a call or an example."""
        for inner in _objects_in(value):
            shape = self._shape(inner) if inner is not value else None
            if shape is not None and shape.name in self.tools:
                raise Problem(Ambiguous, f"A call to {shape.name!r} stands inside a JSON value that is not a call.")

    def _call(self, value: JsonObject) -> ToolCall | None:
        """Return the call that this object is, None where it is just an object."""
        shape = self._shape(value)
        if shape is None:
            return None
        if shape.name in self.tools:
            self._refuse_calls_beside(value, shape)
            arguments = _arguments(self.text, shape)
            if not declares(self.tools, shape.name, "type") and _is_schema(arguments):
                raise Problem(Ambiguous, f"What may be a call to {shape.name!r} may be its definition as well.")
            return ToolCall(shape.name, arguments, _id(self.text, value, "id"))
        unknown = undeclared(shape.name, self.tools)
        if shape.arguments is not None:
            raise unknown
        self.doubt = self.doubt or unknown
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
            raise Problem(Ambiguous, f"A call to {shape.name!r} holds another call outside its arguments.")

    def _shape(self, value: JsonObject, *, is_wrapped: bool = False) -> _Shape | None:
        members = value.members
        arguments = [members[key] for key in _CALL_ARGUMENT_KEYS if key in members]
        wrapped = None if is_wrapped else _wrapped(value)
        if wrapped is not None:
            if not ARGUMENT_KEYS.isdisjoint(members) or value.repeated:
                raise Problem(Ambiguous, "A wrapped call has its name or its arguments twice.")
            return self._shape(wrapped, is_wrapped=True)
        key = "name" if "name" in members else "function"
        name = _string(self.text, value, key)
        if name is None:
            self._doubt_other_keys(value)
            return None
        if name in self.tools:
            if not DEFINITION_KEYS.isdisjoint(members):
                raise Problem(Ambiguous, f"What may be a call to {name!r} may be its definition as well.")
            if "type" in members and _string(self.text, value, "type") not in _CALL_TYPES:
                raise Problem(Ambiguous, f"An object names the tool {name!r}, and is of another type.")
            if value.repeated or len(ARGUMENT_KEYS & members.keys()) > 1:
                raise Problem(Ambiguous, f"A call to {name!r} has its name or its arguments twice.")
            if not arguments and value.size > 1 + len(LABEL_KEYS & members.keys()):
                raise Problem(Ambiguous, f"An object names the tool {name!r} but has no arguments of its own.")
        return _Shape(name, arguments[0] if arguments else None)

    def _doubt_other_keys(self, value: JsonObject) -> None:
        """Note a declared tool under a key that no template of this family writes; with arguments, raise.

        Arguments without any name are noted too: beside calls they may be one whose name was lost.
        """
        if NAME_KEYS.isdisjoint(value.members) and not value.inner and not _NAMELESS_KEYS.isdisjoint(value.members):
            self.doubt = self.doubt or Problem(Ambiguous, "An object has arguments but names no tool.")
        for key in sorted(NAME_KEYS & value.members.keys()):
            name = _string(self.text, value, key)
            if name is None or name not in self.tools:
                continue
            problem = Problem(Ambiguous, f"An object names the tool {name!r} by the key {key!r}.")
            if not ARGUMENT_KEYS.isdisjoint(value.members) or self._holds_parameter(value, name):
                raise problem
            self.doubt = self.doubt or problem

    def _holds_parameter(self, value: JsonObject, name: str) -> bool:
        """Whether a declared parameter of a tool is a key in an object, as far as its text tells."""
        keys = "|".join(map(re.escape, properties_of(self.tools, name)))
        end = min(value.end, value.start + _KEYS_WINDOW)
        return bool(keys) and re.compile(rf'"(?:{keys})"\s*:').search(self.text, value.start, end) is not None

    def _holds_tool(self, value: JsonContainer) -> bool:
        """Whether any object in a value names a declared tool."""
        return any(map(self._names_tool, _objects_in(value)))

    def _names_tool(self, value: JsonObject) -> bool:
        """Whether an object names a declared tool, by whatever key."""
        return any(_string(self.text, value, key) in self.tools for key in NAME_KEYS)

    def _looks_like_call(self, broken: BrokenObject) -> bool:
        """Whether an object that does not parse was going to be a call, or to hold one, in a text without calls."""
        opens_call = any(self._opens_call(one, broken.end, cut=broken.cut) for one in broken.opened)
        return opens_call or any(map(self._holds_tool, broken.inner))

    def _opens_call(self, opened: JsonObject, end: int, *, cut: bool) -> bool:
        if self._names_tool(opened):
            return True
        if opened.open_key in ARGUMENT_KEYS or not ARGUMENT_KEYS.isdisjoint(opened.members):
            # Code is full of such keys: the name has to stand behind the break, or may have been cut off.
            return cut or self.quoted_name.search(self.text, end, end + _NAME_WINDOW) is not None
        return cut and opened.open_key in NAME_KEYS


def json_calls(cursor: Cursor, name_key: str, arguments_key: str, id_key: str = "id") -> Iterator[ToolCall]:
    """Go over an object, or an array of objects, whose keys are known, and yield the calls that they are.

    The keys have to be among those that `jsonscan` looks for. Raises Cut or Malformed where any of them is no call, and
    Problem where its arguments are no object.
    """
    start = cursor.position
    try:
        cursor.json_value()
    except Cut:
        for value in values_at(cursor.text, start)[0]:
            if isinstance(value, JsonObject):  # complete, in a list that is not
                yield _call_with_keys(cursor.text, value, name_key, arguments_key, id_key)
        raise
    found, _ = values_at(cursor.text, start)
    if not found and not _EMPTY_ARRAY.fullmatch(cursor.text, start, cursor.position):
        raise Malformed(f"a call has no {name_key!r}")
    for value in found:
        assert not isinstance(value, BrokenObject)  # it has been gone over
        if isinstance(value, JsonArray) and value.others:
            raise Malformed("a list of calls holds something else")
        for item in value.items if isinstance(value, JsonArray) else [value]:
            yield _call_with_keys(cursor.text, item, name_key, arguments_key, id_key)


def _call_with_keys(text: str, value: JsonContainer, name_key: str, arguments_key: str, id_key: str) -> ToolCall:
    if not isinstance(value, JsonObject) or value.repeated:
        raise Malformed("a call is no object, or has a key twice")
    name = _string(text, value, name_key)
    if name is None:
        raise Malformed(f"a call has no {name_key!r}")
    if not ARGUMENT_KEYS.isdisjoint(value.members.keys() - {arguments_key}):
        raise Malformed(f"a call has arguments by another key than {arguments_key!r}")
    arguments = _arguments(text, _Shape(name, value.members.get(arguments_key)))
    return ToolCall(name, arguments, _id(text, value, id_key))


def _string(text: str, value: JsonObject, key: str) -> str | None:
    member = value.members.get(key)
    if member is None or text[member.start] != '"':
        return None
    return _decoded(text[member.start : member.end])


def _arguments(text: str, shape: _Shape) -> str:
    """Return the arguments as the text of a JSON object: the model's own, where that is one."""
    if shape.arguments is None:
        return "{}"
    written = text[shape.arguments.start : shape.arguments.end]
    if written == "null":
        return "{}"
    if written[0] == "{":
        arguments = escaped_controls(written)
        if not is_strict_json(arguments):
            message = "hold half of a character, or a number without end"
            raise Problem(Unparseable, f"The arguments of a call to {shape.name!r} {message}.")
        return arguments
    if written[0] == '"' and (unwrapped := _object_in_string(written)) is not None:
        return unwrapped
    raise Problem(Unparseable, f"The arguments of a call to {shape.name!r} are not a JSON object.")


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
    if '"object"' not in arguments:
        return False
    value = orjson.loads(arguments)
    return value.get("type") == "object" and (len(value) == 1 or isinstance(value.get("properties"), dict))


def _id(text: str, value: JsonObject, key: str) -> str:
    """Return the model's own id of a call, "" where there is none that a body could hold."""
    found = _string(text, value, key) or ""
    return found if found.isascii() else ""


def _decoded(string: str) -> str:
    """Return the text of a JSON string that may hold raw control characters."""
    text: str = json.loads(string, strict=False)
    return text


def _object_in_string(string: str) -> str | None:
    """Return the JSON object that a JSON string holds, None where it holds something else."""
    text = escaped_controls(_decoded(string).strip())
    if not text:
        return "{}"
    try:
        value = orjson.loads(text)  # strict: no NaN, no half of a surrogate pair that no body can hold
    except orjson.JSONDecodeError:
        return None
    return text if isinstance(value, dict) else None
