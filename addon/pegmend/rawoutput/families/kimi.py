"""Kimi K2: `functions.NAME:INDEX` is the id of a call and holds its name.

    <|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{json}<|tool_call_end|>
    <|tool_calls_section_end|>

The section's tokens may be missing, and so may `functions.`.
"""

import re
from collections.abc import Iterator

from pegmend.rawoutput.cursor import Cursor
from pegmend.rawoutput.families.delimited import delimited_calls
from pegmend.rawoutput.family import Family, Item, Tools, by_grammar

_SECTION = re.compile(r"<\|tool_calls_section_begin\|>")
_SECTION_END = re.compile(r"\s*<\|tool_calls_section_end\|>")
_CALL = re.compile(
    r"\s*<\|tool_call_begin\|>\s*(?P<id>(?:functions\.)?(?P<name>[^\s<>:]{1,256})(?::\d{1,9})?)\s*"
    r"<\|tool_call_argument_begin\|>\s*"
)
_CALL_END = re.compile(r"\s*(?:<\|tool_call_end\|>|\Z)")


def _calls(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    cursor.take(_SECTION)
    yield from delimited_calls(cursor, _CALL, _CALL_END, "<|tool_call_end|>")
    cursor.take(_SECTION_END)


FAMILY = Family(
    "kimi_k2", r"<\|tool_calls_section_begin\|> | <\|tool_call_begin\|>", by_grammar(_calls), ends_reasoning=True
)
