"""What is neither call nor content: sections with nothing in them, and the tokens at the ends of a turn."""

import re
from collections.abc import Iterator

from pegmend.rawoutput.cursor import Cursor
from pegmend.rawoutput.family import Family, Item, Tools, by_grammar

_NOTHING = r"""
    <(?:seed:)?tool_call>\s*</(?:seed:)?tool_call> | <\|tool_call><tool_call\|>
  | <\|tool_calls_section_begin\|>\s*<\|tool_calls_section_end\|>
  | <TOOLCALL>\s*\[\s*\]\s*</TOOLCALL> | <tool_calls>\s*\[\s*\]\s*</tool_calls> | \[TOOL_CALLS\]\s*\[\s*\]
  | <function_calls>(?=\s*<invoke\b) | (?:(?<=</invoke>) | (?<=</invoke>\n))</function_calls>
  | <｜tool▁outputs?▁(?:begin|end)｜> | </dots_function_call>
  | <\|tool_call_start\|>\s*\[\s*\]\s*<\|tool_call_end\|> | <\|end_message\|> | <\|message_model\|>
  | <\|plamo:begin_tool_requests:plamo\|>\s*<\|plamo:end_tool_requests:plamo\|>
  | <answer>(?=\s*<tool_calls>) | (?:(?<=</tool_calls>) | (?<=</tool_calls>\n))</answer>
  | \[END\ FINAL\ RESPONSE\]\s*\Z | (?<=\])<\|python_end\|>
  | \A<\|CHATBOT_TOKEN\|> | <\|eo[mt]_id\|>(?=\s*(?:\Z|;|<\|python_tag|\{))
  | (?:<\|END_OF_TURN_TOKEN\|> | <\|im_end\|> | <turn\|> | <end_of_turn> | (?<=[\]}>])</s>
    | <\|(?:end|endoftext|observation|user)\|> | <｜end▁of▁sentence｜>)\s*\Z
"""
_PATTERN = re.compile(_NOTHING, re.VERBOSE)


def _nothing(cursor: Cursor, tools: Tools) -> Iterator[Item]:
    cursor.expect(_PATTERN, "what holds nothing")
    return iter(())


FAMILY = Family("ignored", _NOTHING, by_grammar(_nothing, may_be_empty=True), needs_tools=False)
