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
from pegmend.rawoutput.families.elements import Invocation
from pegmend.rawoutput.family import Family, Item, Tools, by_grammar

_MARK = r"｜DSML｜\s?"
_SECTION = rf"{_MARK}(?:function_calls|tool_calls|calls)>"
_OPEN = re.compile(rf"<{_SECTION}")
_CLOSE = re.compile(rf"\s*</{_SECTION}")
_INVOKE = Invocation(rf"{_MARK}invoke", rf"{_MARK}parameter")


def _calls(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    cursor.take(_OPEN)
    yield from _INVOKE.calls(cursor, tools)
    cursor.expect(_CLOSE, "the end of the calls")


FAMILY = Family("deepseek_dsml", rf"<{_SECTION} | <{_MARK}invoke\ name=", by_grammar(_calls), ends_reasoning=True)
