"""DeepSeek V3.2 to V4.1: elements marked with `｜DSML｜`.

    <｜DSML｜function_calls>
    <｜DSML｜invoke name="NAME">
    <｜DSML｜parameter name="KEY" string="true">VALUE</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜function_calls>

`string="true"` says that the value is text as it stands, `"false"` that it is JSON. V4 calls the outer element
`tool_calls`, V4.1 `calls`, with a space behind the mark.
"""

import re
from collections.abc import Iterator

from pegmend.rawoutput.cursor import Cursor
from pegmend.rawoutput.families.elements import Parameters, own_value
from pegmend.rawoutput.family import Family, Item, Tools, by_grammar
from pegmend.rawoutput.values import quoted

_MARK = r"｜DSML｜\s?"
_SECTION = rf"<{_MARK}(?:function_calls|tool_calls|calls)>"
_OPEN = re.compile(_SECTION)
_CLOSE = re.compile(rf"\s*</{_MARK}(?:function_calls|tool_calls|calls)>")
_CALL = re.compile(rf'\s*<{_MARK}invoke name="(?P<name>[^"\n]{{1,256}})"\s*(?P<empty>/)?>')
_CALL_END = re.compile(rf"\s*</{_MARK}invoke>")
_PARAMETER_TAG = re.compile(
    rf'<{_MARK}parameter name="(?P<name>[^"\n]{{1,256}})"(?:\s+string="(?P<string>true|false)")?\s*>'
)
_PARAMETER = re.compile(rf"\s*{_PARAMETER_TAG.pattern}")
# A closing tag counts where the call goes on behind it, for a value may hold the tag as well.
_VALUE_END = re.compile(
    rf"</{_MARK}parameter>(?=\s*(?:<{_MARK}parameter |</{_MARK}(?:invoke|function_calls|tool_calls|calls)>|\Z))"
)


def _calls(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    cursor.take(_OPEN)
    while call := cursor.take(_CALL):
        parameters = Parameters(tools, call["name"])
        if not call["empty"]:
            _read_parameters(cursor, parameters)
        yield parameters.call()
    cursor.expect(_CLOSE, "the end of the calls")


def _read_parameters(cursor: Cursor, parameters: Parameters) -> None:
    while parameter := cursor.take(_PARAMETER):
        value = own_value(cursor, _VALUE_END, _PARAMETER_TAG)
        if parameter["string"] == "true":
            parameters.add_json(parameter["name"], quoted(value))
        else:
            parameters.add(parameter["name"], value)
    cursor.expect(_CALL_END, "the end of the call")


FAMILY = Family("deepseek_dsml", rf"{_SECTION} | <{_MARK}invoke\ name=", by_grammar(_calls), ends_reasoning=True)
