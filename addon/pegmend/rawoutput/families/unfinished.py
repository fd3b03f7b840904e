"""A text that ends right behind the marker of a call, or amid the name: a call that was cut."""

from pegmend.rawoutput.family import Broken, Family, Piece, Section, Tools

_OPENING = r"""
  (?: <(?:seed:|minimax:|ifm\|)?tool_calls?> | <\|tool_call> | <\|tool_calls?(?:_section)?_begin\|>
    | <\|tool_call_start\|> | <function_calls?> | <start_function_call> | <(?:dots_function_call|longcat_tool_call)>
    | <TOOLCALL> | \[TOOL_CALLS\] | <\|START_ACTION\|> | <[｜|]tool▁calls?▁begin[｜|]>
  ) \s* <? [\w.:=/-]{0,256} \s* \Z
"""


def _cut(text: str, start: int, tools: Tools) -> Section:
    fragment = Piece(start, len(text), ())
    return Section(len(text), (fragment,), Broken(start, len(text), is_cut=True, is_call=True))


FAMILY = Family("unfinished", _OPENING, _cut)
