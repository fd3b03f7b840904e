"""Apertus: `<|tools_prefix|>[{"NAME": {json}}, {"NAME": {json}}]<|tools_suffix|>`, the name as the key."""

import re
from collections.abc import Iterator

from pegmend.rawoutput.cursor import Cursor
from pegmend.rawoutput.family import Family, Item, Tools, by_grammar
from pegmend.turn import ToolCall

_OPEN = re.compile(r"<\|tools_prefix\|>\s*\[\s*")
_NAME = re.compile(r'\{\s*"(?P<name>[^"\\\n]{1,256})"\s*:\s*')
_NAME_END = re.compile(r"\s*(?:\}\s*|\Z)")
_COMMA = re.compile(r",\s*")
_CLOSE = re.compile(r"\](?:\s*<\|tools_suffix\|>)?|\Z")


def _calls(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    cursor.expect(_OPEN, "the list")
    while name := cursor.take(_NAME):
        arguments = cursor.json_object()
        cursor.expect(_NAME_END, "the end of the call")
        yield ToolCall(name["name"], arguments)
        if not cursor.take(_COMMA):
            break
    cursor.expect(_CLOSE, "the end of the list")


FAMILY = Family("apertus", r"<\|tools_prefix\|>", by_grammar(_calls))
