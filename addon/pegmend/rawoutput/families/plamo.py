"""PLaMo 3: a token for every border.

    <|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|>
    <|plamo:begin_tool_name:plamo|>NAME<|plamo:end_tool_name:plamo|>
    <|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>{json}<|plamo:end_tool_arguments:plamo|>
    <|plamo:end_tool_request:plamo|><|plamo:end_tool_requests:plamo|>

without the line breaks.
"""

import re
from collections.abc import Iterator

from pegmend.rawoutput.cursor import Cursor
from pegmend.rawoutput.families.delimited import delimited_calls
from pegmend.rawoutput.family import Family, Item, Tools, by_grammar


def _token(name: str) -> str:
    return rf"<\|plamo:{name}:plamo\|>"


_OPEN = re.compile(_token("begin_tool_requests"))
_CALL = re.compile(
    rf"\s*{_token('begin_tool_request')}\s*{_token('begin_tool_name')}(?P<name>[^\s<>]{{1,256}}){_token('end_tool_name')}"
    rf"\s*{_token('begin_tool_arguments')}(?:<\|plamo:constrain\|>json<\|plamo:msg\|>)?\s*"
)
_CALL_END = re.compile(rf"\s*{_token('end_tool_arguments')}(?:\s*{_token('end_tool_request')})?|\s*\Z")
_CLOSE = re.compile(rf"\s*(?:{_token('end_tool_requests')}|\Z)")


def _calls(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    cursor.take(_OPEN)
    yield from delimited_calls(cursor, _CALL, _CALL_END, "the end of the call")
    cursor.expect(_CLOSE, "the end of the calls")


FAMILY = Family("plamo3", _token("begin_tool_requests"), by_grammar(_calls))
