"""Mistral from tokenizer v11 on: `[TOOL_CALLS]NAME[ARGS]{json}`, one behind the other.

Mistral Small 3.2 writes `[CALL_ID]ID` behind the name. `[ARGS]` may be missing, and so may all of the markers where the
engine does not print control tokens: then the name of a declared tool at the start of a line tells a call, if nothing
but calls follows to the end of the text. Up to v7 the calls are a JSON array behind the marker, which the JSON family
reads.
"""

import re
from collections.abc import Iterator

from pegmend.rawoutput.cursor import Cursor, Malformed, NoCall
from pegmend.rawoutput.family import Family, Item, Tools, by_grammar
from pegmend.turn import ToolCall

_MARKED = re.compile(r"\[TOOL_CALLS\]\s*(?P<name>[\w.-]{1,256})(?:\[CALL_ID\](?P<id>\w{1,64}))?(?:\[ARGS\])?\s*(?=\{)")
_BARE = re.compile(r"\s*(?P<name>[\w.-]{1,256})(?:\[ARGS\])?(?=\{)")


def _calls(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    marked = cursor.expect(_MARKED, "a call")
    yield ToolCall(marked["name"], cursor.json_object(), marked["id"] or "")


def _bare_calls(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    first = _BARE.match(cursor.text, cursor.position)
    if first is None or first["name"] not in tools:
        raise NoCall
    while call := cursor.take(_BARE):
        yield ToolCall(call["name"], cursor.json_object())
    if not cursor.at_end:
        raise Malformed("what looks like calls by their names alone does not go on to the end of the text")


FAMILY = Family(
    "mistral",
    r"\[TOOL_CALLS\]\s*[\w.-]{1,256}(?:\[CALL_ID\]\w{1,64})?(?:\[ARGS\])?\s*\{",
    by_grammar(_calls),
)
BARE = Family("bare_names", r"^[\w.-]{1,256}(?:\[ARGS\])?\{\s*[\"}]", by_grammar(_bare_calls))
