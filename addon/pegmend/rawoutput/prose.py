"""The prose that is left of a text when its calls are taken out."""

import re
from collections.abc import Sequence

_EDGE_SIGNS = " \t\r\n;,"
# Markers that families put around calls which are JSON themselves: Hermes, Qwen 2.5 and 3, Granite 4; Hunyuan A13B,
# Jamba, Apriel, MiniMax M1; Nemotron; Granite 3 and its 20B; LongCat; GigaChat; InternLM; Phi-4-mini and FireFunction;
# Mistral up to v7; Llama.
_OPENING_MARKER = r"""
    <tool_calls?> | <TOOLCALL> | <\|tool_call\|> | <function_call> | <longcat_tool_call> | <\|function_call\|>
  | <\|action_start\|>\s*<\|plugin\|> | \bfunctools | \[TOOL_CALLS\] | <\|python_tag\|>
"""
_CLOSING_MARKER = r"""
    </tool_calls?> | </TOOLCALL> | </function_call> | </longcat_tool_call> | <\|action_end\|>
  | \[/TOOL_CALLS\] | <\|eo[mt]_id\|>
"""
# What may stand right before a call and belongs to it: an opening bracket, a fence with its language, a list's number
# or bullet at the start of a line, a marker. Only the last characters are looked at.
_BEFORE_CALL = re.compile(
    rf"""
    (?: \[
      | (?P<fence>```(?=[\w+-]{{0,20}}\Z) | `(?=\Z)) [\w+-]*+
      | (?:^|(?<=\n)) [ \t]*+ (?:[0-9]{{1,4}}[.)] | [-*•])
      | {_OPENING_MARKER}
    ) \Z
    """,
    re.VERBOSE,
)
_AFTER_CALL = re.compile(rf"\] | (?P<fence>```|`) | {_CLOSING_MARKER}", re.VERBOSE)
_WINDOW = 40


def remaining_prose(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return `text` without the `spans` (start and end of each call, in order) and without what only held them.

    Separators, brackets, code fences and list numbers around a call go with it; the words between two calls stay, a
    line for each place where there are any.
    """
    kept = []
    previous_end = 0
    fence = ""
    for start, end in spans:
        left, fence = _skip_after_call(text, previous_end, start, fence) if previous_end else (0, "")
        right, opened = _skip_before_call(text, left, start)
        fence = fence or opened
        kept.append(text[left:right].strip())
        previous_end = end
    left, _ = _skip_after_call(text, previous_end, len(text), fence)
    kept.append(text[left:].strip())
    return "\n".join(words for words in kept if words)


def _skip_after_call(text: str, start: int, end: int, fence: str) -> tuple[int, str]:
    """Return where the prose after a call begins, and the code fence that is still open there."""
    while True:
        while start < end and text[start] in _EDGE_SIGNS:
            start += 1
        found = _AFTER_CALL.match(text, start, end)
        if found is None or (found["fence"] and found["fence"] != fence):
            return start, fence
        if found["fence"]:
            fence = ""
        start = found.end()


def _skip_before_call(text: str, start: int, end: int) -> tuple[int, str]:
    """Return where the prose before a call ends, and the code fence that opens there."""
    fence = ""
    while True:
        while start < end and text[end - 1] in _EDGE_SIGNS:
            end -= 1
        window = max(start, end - _WINDOW)
        found = _BEFORE_CALL.search(text[window:end])
        if found is None or (found["fence"] and fence):
            return end, fence
        fence = fence or found["fence"] or ""
        end = window + found.start()
