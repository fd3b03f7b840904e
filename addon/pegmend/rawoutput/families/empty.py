"""What is neither call nor content: sections with nothing in them, and the tokens at the ends of a turn."""

import re

from pegmend.rawoutput.family import Family, Output, Piece, Reader, Section

_NOTHING = r"""
    <(?:seed:)?tool_call>\s*</(?:seed:)?tool_call> | <\|tool_call><tool_call\|>
  | <\|tool_calls_section_begin\|>\s*<\|tool_calls_section_end\|>
  | <｜tool▁outputs?▁(?:begin|end)｜> | </dots_function_call>
  | <\|tool_call_start\|>\s*\[\s*\]\s*<\|tool_call_end\|> | <\|end_message\|> | <\|message_model\|>
  | (?<=</think>)<answer> | (?<=</think>\n)<answer> | \A\s*<answer> | </answer>\s*\Z
  | <\|plamo:begin_tool_requests:plamo\|>\s*<\|plamo:end_tool_requests:plamo\|>
  | \A<\|CHATBOT_TOKEN\|> | <\|END_OF_TURN_TOKEN\|>\s*\Z
  | (?:<turn\|> | </s>)\s*\Z
"""
_PATTERN = re.compile(_NOTHING, re.VERBOSE)


def _reader(output: Output) -> Reader:
    text = output.text

    def read(start: int) -> Section:
        found = _PATTERN.match(text, start)
        assert found is not None
        return Section(found.end(), (Piece(start, found.end(), ()),))

    return read


FAMILY = Family("empty", _NOTHING, _reader, needs_tools=False)
