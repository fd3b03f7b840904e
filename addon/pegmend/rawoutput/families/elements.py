"""What the families have in common that write a parameter as an element with bare text in it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pegmend.errors import Ambiguous
from pegmend.rawoutput.cursor import Cursor
from pegmend.rawoutput.family import Problem, Tools
from pegmend.rawoutput.values import json_object, typed
from pegmend.turn import ToolCall


def schema_of(tools: Tools, name: str, key: str) -> Mapping[str, Any] | None:
    """Return the schema of a tool's parameter, None where none is declared."""
    properties = tools.get(name, {}).get("properties")
    schema = properties.get(key) if isinstance(properties, Mapping) else None
    return schema if isinstance(schema, Mapping) else None


@dataclass(frozen=True, slots=True)
class Bare:
    """A value that is written as bare text."""

    text: str


class Parameters:
    """The parameters of one call, as they are read."""

    def __init__(self, tools: Tools, name: str) -> None:
        self.tools = tools
        self.name = name
        self.members: dict[str, str] = {}

    def __contains__(self, key: str) -> bool:
        return key in self.members

    def add(self, key: str, text: str) -> None:
        """Take a parameter whose value is bare text, typed by the tool's schema."""
        self.add_json(key, typed(text, schema_of(self.tools, self.name, key), self.tools.get(self.name)))

    def add_value(self, key: str, value: str | Bare) -> None:
        """Take a parameter whose value is JSON or bare text."""
        if isinstance(value, Bare):
            self.add(key, value.text)
        else:
            self.add_json(key, value)

    def add_json(self, key: str, value: str) -> None:
        """Take a parameter whose value is JSON."""
        if key in self.members:
            raise Problem(Ambiguous, f"A call to {self.name!r} has the parameter {key!r} twice.")
        self.members[key] = value

    def call(self) -> ToolCall:
        """Return the call with the parameters read so far."""
        return ToolCall(self.name, json_object(self.members))


def own_value(cursor: Cursor, end: re.Pattern[str], opening: re.Pattern[str]) -> str:
    """Go over a value and its `end`, and return it. Raises Cut, and Problem where the value holds the `opening` of one.

    Such a value may tell of calls, or its own closing tag is missing and it has swallowed what came next.
    """
    value = cursor.until(end, "the end of a value")
    if found := opening.search(value):
        raise Problem(Ambiguous, f"A value holds {found.group().strip()[:80]!r}, so that its end is not certain.")
    return value


@dataclass(frozen=True)
class Invocation:
    """How a family writes a call as an element with a name and one element for each parameter.

    `call` and `parameter` match the opening tags, with the white space in front, and have a group `name`; in `call` a
    group `empty` tells that the element has no content. `parameter_tag` is the tag alone. `value_end` matches the
    closing tag of a parameter where the call goes on behind it, for a value may hold the tag as well.
    """

    call: re.Pattern[str]
    call_end: re.Pattern[str]
    parameter: re.Pattern[str]
    parameter_tag: re.Pattern[str]
    value_end: re.Pattern[str]

    @classmethod
    def of(cls, call: str, parameter: str, *, name: str = r'\s+name="(?P<name>[^"<>\n]{1,256})"') -> "Invocation":
        """Return the manner of elements that are called so; the two and `name` are regular expressions."""
        tag = rf"<{parameter}{name}[^<>\n]{{0,80}}>"
        return cls(
            re.compile(rf"\s*<{call}{name}\s*(?P<empty>/)?>"),
            re.compile(rf"\s*</{call}>"),
            re.compile(rf"\s*{tag}"),
            re.compile(tag),
            re.compile(rf"</{parameter}>(?=\s*(?:<{parameter}\b|</{call}>|\Z))"),
        )

    def calls(self, cursor: Cursor, tools: Tools) -> Iterator[ToolCall]:
        """Yield the calls that stand here, one directly behind the other."""
        while element := cursor.take(self.call):
            parameters = Parameters(tools, element["name"])
            if not element["empty"]:
                while parameter := cursor.take(self.parameter):
                    parameters.add(parameter["name"], own_value(cursor, self.value_end, self.parameter_tag))
                cursor.expect(self.call_end, "the end of the call")
            yield parameters.call()
