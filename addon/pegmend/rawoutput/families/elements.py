"""What the families have in common that write a parameter as an element with bare text in it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pegmend.errors import Ambiguous
from pegmend.rawoutput.cursor import Cursor
from pegmend.rawoutput.family import Problem, Tools
from pegmend.rawoutput.tools import declares, properties_of
from pegmend.rawoutput.values import json_object, member_schema, quoted, typed
from pegmend.turn import ToolCall


def schema_of(tools: Tools, name: str, key: str) -> Mapping[str, Any] | None:
    """Return the schema of a tool's parameter, None where none is declared."""
    root = tools.get(name, {})
    return member_schema(root, key, root)


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

    def add_text(self, key: str, text: str) -> None:
        """Take a parameter whose value is text whatever the schema says."""
        self.add_json(key, quoted(text))

    def add_json(self, key: str, value: str) -> None:
        """Take a parameter whose value is JSON."""
        if key in self.members:
            raise Problem(Ambiguous, f"A call to {self.name!r} has the parameter {key!r} twice.")
        self.members[key] = value

    def may_take(self, key: str) -> bool:
        """Whether a parameter with this name may come yet, as far as the tool's schema tells."""
        return key not in self.members and not self._is_unknown(key)

    def refuse_rest(self, key: str, value: str, closing: re.Pattern[str]) -> None:
        """Raise where the parameter may be part of the value before: it is unknown, and holds a closing tag too many.

        That value tells of parameters then, the last of which ended with that tag.
        """
        if self._is_unknown(key) and (found := closing.search(value)):
            raise swallowed(found.group())

    def _is_unknown(self, key: str) -> bool:
        """Whether the tool has a schema, and this parameter is not in it."""
        return bool(properties_of(self.tools, self.name)) and not declares(self.tools, self.name, key)

    def call(self) -> ToolCall:
        """Return the call with the parameters read so far."""
        return ToolCall(self.name, json_object(self.members))


def own_value(cursor: Cursor, end: re.Pattern[str], opening: re.Pattern[str]) -> str:
    """Go over a value and its `end`, and return it. Raises Cut, and Problem where the value holds the `opening` of one.

    Such a value may tell of calls, or its own closing tag is missing and it has swallowed what came next.
    """
    value = cursor.until(end, "the end of a value")
    if found := opening.search(value):
        raise swallowed(found.group())
    return value


def swallowed(tag: str) -> Problem:
    """Return the error for a value that holds a tag of its own format."""
    return Problem(Ambiguous, f"A value holds {tag.strip()[:80]!r}, so that its end is not certain.")


class Invocation:
    """How a family writes a call as an element with a name and one element for each parameter.

    `call` and `parameter` are what the elements are called, as regular expressions. `string="true"` in the tag of a
    parameter makes its value text whatever the schema says.
    """

    def __init__(self, call: str, parameter: str) -> None:
        name = r'\s+name="(?P<name>[^"<>\n]{1,256})"'
        tag = rf'<{parameter}{name}(?P<text>\s+string="true")?[^<>\n]{{0,80}}>'
        self._call = re.compile(rf"\s*<{call}{name}\s*(?P<empty>/)?>")
        self._call_end = re.compile(rf"\s*</{call}>")
        self._parameter = re.compile(rf"\s*{tag}")
        self._parameter_tag = re.compile(tag)
        self._parameter_end = re.compile(f"</{parameter}>")
        # A closing tag counts where the call goes on behind it, for a value may hold the tag as well.
        self._value_end = re.compile(rf"</{parameter}>(?=\s*(?:<{parameter}\b|</{call}>|\Z))")

    def calls(self, cursor: Cursor, tools: Tools) -> Iterator[ToolCall]:
        """Yield the calls that stand here, one directly behind the other."""
        while element := cursor.take(self._call):
            parameters = Parameters(tools, element["name"])
            if not element["empty"]:
                self._read_parameters(cursor, parameters)
            yield parameters.call()

    def _read_parameters(self, cursor: Cursor, parameters: Parameters) -> None:
        while parameter := cursor.take(self._parameter):
            value = cursor.until(self._value_end, "the end of a value")
            for tag in self._parameter_tag.finditer(value):
                if parameters.may_take(tag["name"]):
                    raise swallowed(tag.group())
            parameters.refuse_rest(parameter["name"], value, self._parameter_end)
            if parameter["text"]:
                parameters.add_text(parameter["name"], value)
            else:
                parameters.add(parameter["name"], value)
        cursor.expect(self._call_end, "the end of the call")
