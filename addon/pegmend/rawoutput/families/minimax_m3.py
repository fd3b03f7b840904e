"""MiniMax M3: one token in front of every tag, and values that nest.

    ]<]minimax[>[<tool_call>
    ]<]minimax[>[<invoke name="NAME">]<]minimax[>[<KEY>VALUE]<]minimax[>[</KEY>]<]minimax[>[</invoke>
    ]<]minimax[>[</tool_call>

An object is an element for each member, an array one `<item>` for each element. Since the token tells a tag, values are
free text.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pegmend.errors import Ambiguous
from pegmend.rawoutput.cursor import Cursor, Malformed
from pegmend.rawoutput.families.elements import Parameters, own_value, schema_of
from pegmend.rawoutput.family import Family, Item, Problem, Tools, by_grammar
from pegmend.rawoutput.values import allows, allows_only_text, item_schema, json_object, member_schema, quoted, typed

_MARK = r"\]<\]minimax\[>\["
_OPEN = re.compile(rf"\s*{_MARK}<tool_call>")
_CLOSE = re.compile(rf"\s*{_MARK}</tool_call>")
_CALL = re.compile(rf'\s*{_MARK}<invoke name="(?P<name>[^"<>\n]{{1,256}})">')
_CALL_END = re.compile(rf"\s*{_MARK}</invoke>")
_TAG = re.compile(rf"{_MARK}<(?P<name>[^<>/\n][^<>\n]{{0,255}})>")
_TEXT_END = re.compile(rf"(?={_MARK})")
_ANY_TAG = re.compile(rf"{_MARK}</?[^<>\n]")
_MAX_DEPTH = 100


def _calls(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    cursor.expect(_OPEN, "the section")
    while call := cursor.take(_CALL):
        parameters = Parameters(tools, call["name"])
        root = tools.get(call["name"], {})
        cursor.skip_space()
        while tag := cursor.take(_TAG):
            parameters.add_json(
                tag["name"], _value(cursor, tag["name"], schema_of(tools, call["name"], tag["name"]), root, 0)
            )
            cursor.skip_space()
        cursor.expect(_CALL_END, "the end of the call")
        yield parameters.call()
    cursor.expect(_CLOSE, "the end of the section")


def _value(cursor: Cursor, name: str, schema: Mapping[str, Any] | None, root: Mapping[str, Any], depth: int) -> str:
    """Read the content of an element and its closing tag."""
    if depth > _MAX_DEPTH:
        raise Malformed("a value nests too deep")
    closing = re.compile(rf"{_MARK}</{re.escape(name)}>")
    if allows_only_text(schema, root):
        return quoted(own_value(cursor, closing, _ANY_TAG))
    start = cursor.position
    cursor.skip_space()
    if _TAG.match(cursor.text, cursor.position):
        value = _members(cursor, schema, root, depth)
        cursor.skip_space()
    else:
        cursor.position = start
        text = cursor.until(_TEXT_END, "the end of a value")
        value = _empty(schema, root) if not text.strip() else typed(text, schema, root)
    cursor.expect(closing, f"</{name}>")
    return value


def _members(cursor: Cursor, schema: Mapping[str, Any] | None, root: Mapping[str, Any], depth: int) -> str:
    """Read elements: an array where all are items that no schema declares as a member, otherwise an object."""
    is_array = allows(schema, "array", root) or not allows(schema, "object", root)
    names: list[str] = []
    values: list[str] = []
    while tag := cursor.take(_TAG):
        is_item = tag["name"] == "item" and is_array
        inner = item_schema(schema, root) if is_item else member_schema(schema, tag["name"], root)
        names.append(tag["name"])
        values.append(_value(cursor, tag["name"], inner, root, depth + 1))
        cursor.skip_space()
    if is_array and set(names) == {"item"}:
        return "[" + ", ".join(values) + "]"
    if len(set(names)) < len(names):
        raise Problem(Ambiguous, "An object in a call has a member twice.")
    return json_object(dict(zip(names, values, strict=True)))


def _empty(schema: Mapping[str, Any] | None, root: Mapping[str, Any]) -> str:
    if allows(schema, "string", root) or not (allows(schema, "array", root) or allows(schema, "object", root)):
        return '""'
    return "[]" if allows(schema, "array", root) else "{}"


FAMILY = Family("minimax_m3", rf"{_MARK}<tool_call>", by_grammar(_calls))
