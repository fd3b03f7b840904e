"""Models prompted in the manner of ReAct: `Action: NAME`, and `Action Input: {json}` on the next line."""

import re
from collections.abc import Iterator

from pegmend.rawoutput.cursor import Cursor
from pegmend.rawoutput.family import Family, Item, Tools, by_grammar
from pegmend.turn import ToolCall

_ACTION = re.compile(r"Action:[ \t]*(?P<name>[\w.-]{1,256})[ \t]*\n\s*Action Input:\s*(?=\{)")
_NEXT = re.compile(r"\s*(?=Action:)")


def _calls(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    while action := cursor.take(_ACTION):
        yield ToolCall(action["name"], cursor.json_object())
        cursor.take(_NEXT)


FAMILY = Family("react", r"^Action:[ \t]*[\w.-]{1,256}[ \t]*\n\s*Action\ Input:\s*\{", by_grammar(_calls))
