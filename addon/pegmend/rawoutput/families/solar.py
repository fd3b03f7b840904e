"""Solar Open: id, name and JSON behind tokens of their own.

<|tool_calls|><|tool_call:begin|>ID<|tool_call:name|>NAME<|tool_call:args|>{json}<|tool_call:end|><|calls|>
"""

import re
from collections.abc import Iterator

from pegmend.rawoutput.cursor import Cursor
from pegmend.rawoutput.families.delimited import delimited_calls
from pegmend.rawoutput.family import Family, Item, Tools, by_grammar

_OPEN = re.compile(r"<\|tool_calls\|>")
_CALL = re.compile(
    r"\s*<\|tool_call:begin\|>(?P<id>[^\s<>]{0,64})<\|tool_call:name\|>(?P<name>[^\s<>]{1,256})<\|tool_call:args\|>\s*"
)
_CALL_END = re.compile(r"\s*(?:<\|tool_call:end\|>|\Z)")
_CLOSE = re.compile(r"\s*<\|calls\|>")


def _calls(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    cursor.take(_OPEN)
    yield from delimited_calls(cursor, _CALL, _CALL_END, "<|tool_call:end|>")
    cursor.take(_CLOSE)


FAMILY = Family("solar_open", r"<\|tool_calls\|>\s*<\|tool_call:begin\|> | <\|tool_call:begin\|>", by_grammar(_calls))
