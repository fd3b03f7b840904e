"""Functionary, and Llama's function tags.

v3.1: `<function=NAME>{json}</function>`, one behind the other.

v3.2: `>>>NAME`, a line break and the JSON, one behind the other; `>>>all` and a line break begin an answer in words.
The first `>>>` stands in the prompt.
"""

import re
from collections.abc import Iterator

from pegmend.rawoutput.cursor import Cursor, NoCall
from pegmend.rawoutput.families.delimited import delimited_calls
from pegmend.rawoutput.family import Family, Item, Tools, Words, by_grammar, undeclared
from pegmend.turn import ToolCall

_TAG = re.compile(r"\s*<function=[ \t]*+(?P<name>[^<>\n]{1,256}?)[ \t]*+>\s*(?=\{)")
_TAG_END = re.compile(r"\s*(?:</function>|\Z)")
_LINE = re.compile(r"\s*(?P<marker>>>>)?(?P<name>[\w.-]{1,256})[ \t]*\n")
_NEXT_LINE = re.compile(r"(?=>>>[\w.-]{1,256}[ \t]*\n)|\Z")


def _tagged(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    return delimited_calls(cursor, _TAG, _TAG_END, "</function>")


def _lines(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    line = cursor.expect(_LINE, "a name")
    if line["name"] in tools:
        yield ToolCall(line["name"], cursor.json_object())
    elif line["name"] == "all":
        yield Words(cursor.until(_NEXT_LINE, "the end of the words"))
    elif line["marker"]:
        raise undeclared(line["name"], tools)
    else:
        raise NoCall


V31 = Family("functionary_v31", r"<function=[^<>\n]{1,256}>\s*\{", by_grammar(_tagged))
V32 = Family(
    "functionary_v32",
    r"""(?:\A\s*|>>>)[\w.-]{1,256}[ \t]*\n\{\s*["}] | (?:\A\s*(?=all\s[\s\S]*>>>)|>>>)all[ \t]*\n""",
    by_grammar(_lines),
)
