"""Qwen3-Coder, Qwen3.5, Nemotron 3 Nano, Step 3.5, MiMo V2, Seed-OSS: a function element with parameter elements.

    <tool_call>
    <function=NAME>
    <parameter=KEY>
    VALUE
    </parameter>
    </function>
    </tool_call>

A value that begins with a newline has one on each side that belongs to the markup; Seed-OSS writes none. Models leave
out the outer tags, `</function>`, and a `</parameter>` before the next parameter.
"""

import re
from collections.abc import Iterator

from pegmend.rawoutput.cursor import Cursor, Cut
from pegmend.rawoutput.families.elements import Parameters, swallowed
from pegmend.rawoutput.family import Family, Item, Tools, by_grammar
from pegmend.rawoutput.tools import declares
from pegmend.turn import ToolCall

_FUNCTION = re.compile(r"\s*(?:<(?:seed:)?tool_call>\s*)?<function=([^<>\n]{1,256})>(?!\s*\{)")
_FUNCTION_END = re.compile(r"\s*(?:</function>(?:\s*</(?:seed:)?tool_call>)?|</(?:seed:)?tool_call>)")
_PARAMETER = re.compile(r"\s*<parameter=([^<>\n]{1,256})>((?:\r?\n)?)")
_PARAMETER_END = re.compile("</parameter>")
# A closing tag counts where the call goes on behind it, for a value may hold the tag as well.
_VALUE_END = re.compile(
    r"</parameter>(?=\s*(?:<parameter=|</?function[=>]|</(?:seed:)?tool_call>|<(?:seed:)?tool_call>\s*<function=|\Z))"
    r"|\r?\n(?=<parameter=(?P<next>[^<>\n]{1,256})>\r?\n)"
)
# The very last value may lack its closing tag.
_LAST_VALUE_END = re.compile(r"(?=(?:\r?\n)?</function>\s*(?:</(?:seed:)?tool_call>\s*)?\Z)")
# A value may tell of calls, or its own closing tag is missing and it has swallowed what came next.
_CALL_IN_VALUE = re.compile(
    r"</function>\s*(?:</?(?:seed:)?tool_call>|<function=)|<(?:seed:)?tool_call>\s*<function="
    r"|<function=[^<>\n]{1,256}>\s*(?:<parameter=|</function>)"
)
_PARAMETER_IN_VALUE = re.compile(r"<parameter=([^<>\n]{1,256})>")
_ANOTHER_CALL = re.compile(r"\s*(?:<(?:seed:)?tool_call>\s*)?<function=")


def _calls(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    while function := cursor.take(_FUNCTION):
        yield _call(cursor, Parameters(tools, function[1].strip()))


def _call(cursor: Cursor, parameters: Parameters) -> ToolCall:
    while parameter := cursor.take(_PARAMETER):
        key, value = parameter[1].strip(), _value(cursor, parameters, parameter[2])
        parameters.refuse_rest(key, value, _PARAMETER_END)
        parameters.add(key, value)
    if not _ANOTHER_CALL.match(cursor.text, cursor.position):
        cursor.expect(_FUNCTION_END, "the end of the function")
    return parameters.call()


def _value(cursor: Cursor, parameters: Parameters, line_break: str) -> str:
    """Go over a value and its end, and return it without the line break that belongs to the closing tag."""
    start = cursor.position
    end = _value_end(cursor, parameters)
    value = cursor.text[start : end.start()]
    if found := _CALL_IN_VALUE.search(value):
        raise swallowed(found.group())
    for found in _PARAMETER_IN_VALUE.finditer(value):
        if _may_be_next(found[1], parameters):
            raise swallowed(found.group())
    cursor.position = end.end()
    return value.removesuffix(line_break) if end.group() == "</parameter>" else value


def _value_end(cursor: Cursor, parameters: Parameters) -> re.Match[str]:
    """Return where a value ends: its closing tag, or the line of the next parameter."""
    searched, tells_of_calls = cursor.position, False
    for end in _VALUE_END.finditer(cursor.text, searched):
        if end["next"] is None:
            return end
        # The line of a parameter may also be part of a value that tells of calls.
        tells_of_calls = tells_of_calls or cursor.text.find("<function=", searched, end.start()) >= 0
        searched = end.start()
        if _may_be_next(end["next"], parameters) and not tells_of_calls:
            return end
    last = None if cursor.truncated else _LAST_VALUE_END.search(cursor.text, cursor.position)
    if last is None:
        raise Cut("the end of a parameter")
    return last


def _may_be_next(key: str, parameters: Parameters) -> bool:
    """Whether the tool declares a parameter that has not been given yet."""
    return declares(parameters.tools, parameters.name, key) and key not in parameters


FAMILY = Family(
    "qwen_xml",
    r"<(?:seed:)?tool_call>\s*<function= | <function=[^<>\n]{1,256}>\s*(?:<parameter=|</function>)",
    by_grammar(_calls),
    ends_reasoning=True,
)
