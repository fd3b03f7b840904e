"""DeepSeek V3, R1, V3.1, Cogito: calls between tokens with full-width bars.

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME                   V3, R1
    ```json
    {json}
    ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{json}<｜tool▁call▁end｜>     V3.1

Further calls stand before the end of the section. Some quants spell the tokens with plain bars.
"""

import re
from collections.abc import Iterator

from pegmend.rawoutput.cursor import Cursor
from pegmend.rawoutput.family import Family, Item, Tools, by_grammar
from pegmend.turn import ToolCall


def _token(name: str) -> str:
    return rf"<[｜|]tool▁{name}[｜|]>"


_SECTION = re.compile(rf"\s*{_token('calls▁begin')}")
_SECTION_END = re.compile(rf"\s*{_token('calls▁end')}")
_CALL = re.compile(rf"\s*+{_token('call▁begin')}\s*+(?P<name>[^<>\n]{{0,256}}){_token('sep')}")
_CALL_END = re.compile(rf"\s*+(?:```\s*+)?(?:{_token('call▁end')}|\Z)")
_FENCED_NAME = re.compile(r"\s*+(?P<name>[^<>\n{}]{1,256}+)\n\s*+```(?:json)?\s*+(?=\{)")


def _calls(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    cursor.take(_SECTION)
    while call := cursor.take(_CALL):
        fenced = cursor.take(_FENCED_NAME)
        name = (fenced or call)["name"].strip()
        cursor.skip_space()
        arguments = cursor.json_object()
        cursor.expect(_CALL_END, "the end of the call")
        yield ToolCall(name, arguments)
    cursor.take(_SECTION_END)


FAMILY = Family("deepseek", rf"{_token('calls▁begin')} | {_token('call▁begin')}", by_grammar(_calls))
