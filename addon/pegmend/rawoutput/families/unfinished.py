"""A text that ends right behind the marker of a call, or amid the name: a call that was cut."""

from pegmend.rawoutput.family import Broken, Family, Output, Piece, Reader, Section

_OPENING = r"""
  (?: <(?:seed:|minimax:|ifm\|)?tool_calls?> | <\|tool_call> | <\|tool_calls?(?:_section)?_begin\|>
    | <\|tool_call_start\|> | <function_calls?> | <start_function_call> | <(?:dots_function_call|longcat_tool_call)>
    | <TOOLCALL> | \[TOOL_CALLS\] | <\|START_ACTION\|> | <[｜|]tool▁calls?▁begin[｜|]>
  ) \s*+ <? [\w.:=/-]{0,256}+ \s*+ \Z
"""


def _reader(output: Output) -> Reader:
    text = output.text

    def read(start: int) -> Section:
        fragment = Piece(start, len(text), ())
        return Section(len(text), (fragment,), Broken(start, len(text), is_cut=True, is_call=True))

    return read


FAMILY = Family("unfinished", _OPENING, _reader)
