"""MiniMax M2, dots, Step 3: an `invoke` element for a call in a section of the family's own.

    <minimax:tool_call>
    <invoke name="NAME">
    <parameter name="KEY">VALUE</parameter>
    </invoke>
    </minimax:tool_call>

dots writes `<dots_function_call>` around it, or a JSON object in there. Step 3 puts `<｜tool_calls_begin｜>`,
`<｜tool_call_begin｜>` and their ends around elements in a namespace, and a type before `invoke`.
"""

import re
from collections.abc import Iterator

from pegmend.rawoutput.cursor import Cursor
from pegmend.rawoutput.families.elements import Invocation
from pegmend.rawoutput.families.json_calls import json_calls
from pegmend.rawoutput.family import Family, Item, Tools, Words, by_grammar

_PLAIN = Invocation("invoke", "parameter")
_STEPTML = Invocation("steptml:invoke", "steptml:parameter")
_MINIMAX = re.compile(r"<minimax:tool_call>")
_MINIMAX_END = re.compile(r"\s*</minimax:tool_call>")
_DOTS = re.compile(r"<dots_function_call>\s*")
_DOTS_END = re.compile(r"\s*</dots_function_call>")
_WORDS = re.compile(r"[^\s<>{}\[\]\"'=:()][^<>{}\[\]\"'=:()]{0,1000}(?=</dots_function_call>)")
_OBJECT = re.compile(r"(?=\{)")
_STEP_CALL = re.compile(r"\s*<｜tool_call_begin｜>\s*(?:function<｜tool_sep｜>)?")
_STEP_CALL_END = re.compile(r"\s*<｜tool_call_end｜>")
_STEP = re.compile(r"\s*<｜tool_calls_begin｜>")
_STEP_END = re.compile(r"\s*<｜tool_calls_end｜>")


def _minimax(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    is_section = cursor.take(_MINIMAX)
    yield from _PLAIN.calls(cursor, tools)
    if is_section:
        cursor.expect(_MINIMAX_END, "</minimax:tool_call>")


def _dots(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    cursor.expect(_DOTS, "<dots_function_call>")
    if cursor.take(_OBJECT):
        yield from json_calls(cursor, "name", "arguments")
    else:
        yield from _PLAIN.calls(cursor, tools)
    if words := cursor.take(_WORDS):
        yield Words(words.group())
    cursor.expect(_DOTS_END, "</dots_function_call>")


def _step(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    cursor.take(_STEP)
    while cursor.take(_STEP_CALL):
        yield from _STEPTML.calls(cursor, tools)
        cursor.expect(_STEP_CALL_END, "the end of the call")
    cursor.take(_STEP_END)


MINIMAX = Family("minimax_m2", r'<minimax:tool_call>\s*<invoke | <invoke\s+name="', by_grammar(_minimax))
DOTS = Family("dots", "<dots_function_call>", by_grammar(_dots))
STEP = Family(
    "step3",
    r"(?:<｜tool_calls_begin｜>\s*)?<｜tool_call_begin｜>\s*+(?:function<｜tool_sep｜>\s*+)?<steptml:",
    by_grammar(_step),
)
