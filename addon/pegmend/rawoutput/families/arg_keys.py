"""GLM 4.5 to 5, Ling 3, Laguna, Spark 2.5, Hunyuan Hy3, K2 Horizon: elements for the keys and the values.

    <tool_call>NAME
    <arg_key>KEY</arg_key>
    <arg_value>VALUE</arg_value>
    </tool_call>

The newlines may be missing. Hy3 puts all calls between `<tool_calls>` tags and `<tool_sep>` behind the name, and its
template prints every tag with a suffix (`<tool_call:opensource>`). K2 Horizon has tags of its own (`<ifm|tool_call>`),
may name the type of a value (`<ifm|arg_type>`), and may write a JSON object as the whole call.
"""

import re
from collections.abc import Iterator

import orjson

from pegmend.rawoutput.cursor import Cursor
from pegmend.rawoutput.families.elements import Parameters, own_value, schema_of
from pegmend.rawoutput.families.json_calls import json_calls
from pegmend.rawoutput.family import Family, Item, Tools, by_grammar
from pegmend.rawoutput.jsonscan import members_of
from pegmend.rawoutput.values import json_object, typed
from pegmend.turn import ToolCall


def _tag(name: str) -> str:
    return rf"(?:ifm\|)?(?:{name})(?::\w{{1,40}})?>"


_NAME = r"[^\s<>{}\[\]\"']{1,256}"
_SECTION = re.compile(rf"\s*<{_tag('tool_calls')}")
_SECTION_END = re.compile(rf"\s*</{_tag('tool_calls')}")
_CALL = re.compile(rf"\s*<{_tag('tool_call')}\s*(?:(?P<name>{_NAME})\s*(?:<{_tag('tool_sep')}\s*)?|(?=\{{))")
_CALL_END = re.compile(rf"\s*</{_tag('tool_call')}")
_KEY = re.compile(rf"\s*<{_tag('arg_key')}")
_KEY_END = re.compile(rf"</{_tag('arg_key')}\s*")
_TYPE = re.compile(rf"<{_tag('arg_type')}[^<>]{{0,80}}</{_tag('arg_type')}\s*")
_VALUE = re.compile(rf"<{_tag('arg_value')}")
# A closing tag counts where the call goes on behind it, for a value may hold the tag as well.
_VALUE_END = re.compile(rf"</{_tag('arg_value')}(?=\s*(?:<{_tag('arg_key')}|</{_tag('tool_call')}|\Z))")
# The very last value may lack its closing tag.
_LAST_VALUE_END = re.compile(rf"(?=</{_tag('tool_call')}\s*(?:</{_tag('tool_calls')}\s*)?\Z)")

_INNER_TAG = re.compile(rf"<{_tag('arg_value')}|<{_tag('arg_key')}[^<>]{{0,256}}</{_tag('arg_key')}")
_OWN_TAG = re.compile(rf"</?{_tag('arg_key|arg_value|tool_call')}")


def _calls(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    cursor.take(_SECTION)
    while call := cursor.take(_CALL):
        if call["name"] is None:
            read = _from_json(cursor, tools)
        else:
            read = _from_keys(cursor, Parameters(tools, call["name"]))
        cursor.expect(_CALL_END, "the end of the call")
        yield read
    cursor.take(_SECTION_END)


def _from_keys(cursor: Cursor, parameters: Parameters) -> ToolCall:
    while cursor.take(_KEY):
        key = own_value(cursor, _KEY_END, _OWN_TAG)
        cursor.take(_TYPE)
        cursor.expect(_VALUE, "a value")
        is_last = not cursor.truncated and not _VALUE_END.search(cursor.text, cursor.position)
        end = _LAST_VALUE_END if is_last else _VALUE_END
        parameters.add(key.strip(), own_value(cursor, end, _OWN_TAG if is_last else _INNER_TAG))
    return parameters.call()


def _from_json(cursor: Cursor, tools: Tools) -> ToolCall:
    """Read a call that is JSON; its strings are typed by the schema, as K2 Horizon's own parser does it."""
    (call,) = json_calls(cursor, "name", "arguments")
    members = {}
    for key, written in members_of(call.arguments):
        members[key] = written
        if written.startswith('"'):
            members[key] = typed(orjson.loads(written), schema_of(tools, call.name, key), tools.get(call.name))
    return ToolCall(call.name, json_object(members))


FAMILY = Family(
    "arg_keys",
    rf"""(?:<{_tag("tool_calls")}\s*)?<{_tag("tool_call")}\s*{_NAME}\s*(?:<{_tag("arg_key|tool_sep")}|</{_tag("tool_call")})
    | <ifm\|tool_calls>\s*<ifm\|tool_call>""",
    by_grammar(_calls),
    ends_reasoning=True,
)
