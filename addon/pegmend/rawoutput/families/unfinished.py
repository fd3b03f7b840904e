"""A text that ends right behind the marker of a call, or amid the name: a call that was cut."""

from collections.abc import Iterator

from pegmend.rawoutput.cursor import Cursor, Cut
from pegmend.rawoutput.family import Family, Item, Tools, by_grammar

_OPENING = r"""
  (?: <(?:seed:|minimax:|ifm\|)?tool_calls?> | <\|tool_call> | <\|tool_calls?(?:_section)?_begin\|>
    | <\|tool_call_start\|> | <function_calls?> | <start_function_call> | <(?:dots_function_call|longcat_tool_call)>
    | <TOOLCALL> | \[TOOL_CALLS\] | <\|START_ACTION\|> | <[｜|]tool▁calls?▁begin[｜|]>
  ) \s*+ <? [\w.:=/\[\]-]{0,256}+ \s*+ \Z
  | >>>[\w.-]{1,256}+ \s*+ \Z
"""


def _cut(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    raise Cut("the call")


FAMILY = Family("unfinished", _OPENING, by_grammar(_cut))
