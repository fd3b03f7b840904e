"""Command R and its successors: JSON with keys of its own.

    <|START_ACTION|>[
        {"tool_call_id": "0", "tool_name": "NAME", "parameters": {...}}
    ]<|END_ACTION|>

Words stand between `<|START_RESPONSE|>` or `<|START_TEXT|>` and its end. Command R+ writes the list in a fence behind
`Action:`, with `directly_answer` for no call at all.
"""

import re
from collections.abc import Iterator

from pegmend.rawoutput.cursor import Cursor
from pegmend.rawoutput.families.json_calls import json_calls
from pegmend.rawoutput.family import Family, Item, Tools, Words, by_grammar

_START = re.compile(r"<\|START_ACTION\|>\s*|Action:\s*```(?:json)?\s*")
_END = re.compile(r"\s*(?:<\|END_ACTION\|>|```)")
_WORDS = re.compile(r"<\|START_(?:RESPONSE|TEXT)\|>")
_WORDS_END = re.compile(r"<\|END_(?:RESPONSE|TEXT)\|>|\Z")
_CITATION = re.compile(r"</?co(?:: [^<>\n]{0,200})?>")
_NO_CALL = "directly_answer"


def _actions(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    cursor.expect(_START, "the action")
    for call in json_calls(cursor, "tool_name", "parameters", "tool_call_id"):
        if call.name in tools or call.name != _NO_CALL:
            yield call
    cursor.expect(_END, "the end of the action")


def _response(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    cursor.expect(_WORDS, "the response")
    yield Words(_CITATION.sub("", cursor.until(_WORDS_END, "the end of the response")))


ACTION = Family("cohere", r"<\|START_ACTION\|> | ^Action:\s*```(?:json)?\s*\[", by_grammar(_actions, may_be_empty=True))
RESPONSE = Family("cohere_response", r"<\|START_(?:RESPONSE|TEXT)\|>", by_grammar(_response), needs_tools=False)
