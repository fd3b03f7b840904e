"""The prose that is left of a text when its calls are taken out."""

import re
from collections.abc import Sequence, Set

from pegmend.rawoutput.family import Piece, Words
from pegmend.rawoutput.fences import fences_around

SEPARATORS = " \t\r\n;,"
"""What may stand between a call and words, or another call."""

# Markers that families put around calls which are JSON themselves: Hermes, Qwen 2.5 and 3, Granite 4; Hunyuan A13B,
# Jamba, Apriel, MiniMax M1; Nemotron; Granite 3 and its 20B; LongCat; GigaChat; InternLM; Phi-4-mini and FireFunction;
# Mistral up to v7; Llama; LFM2, Llama 4 and OLMo 3 where they write JSON; the tag of the declarations, which Qwen 2.5
# writes in place of the calls'.
_OPENING_MARKER = r"""
    <tool_calls?> | <TOOLCALL> | <\|tool_call\|> | <function_call> | <longcat_tool_call> | <\|function_call\|>
  | <\|action_start\|>\s*<\|plugin\|> | \bfunctools | \[TOOL_CALLS\] | <\|python_tag\|> | <tools>
  | <\|python_start\|>(?:\s*<\|python_end\|>)? | <\|tool_call_start\|> | <function_calls>
  | <\|message_sep\|>\s*function\ call<\|role_sep\|>
"""
_CLOSING_MARKER = r"""
    </tool_calls?> | </TOOLCALL> | </function_call> | </longcat_tool_call> | <\|action_end\|>
  | \[/TOOL_CALLS\] | <\|eo[mt]_id\|> | </tools> | <\|/tool_call\|>
  | <\|python_end\|> | <\|tool_call_end\|> | </function_calls>
"""
# What may stand right before a call and belongs to it: an opening bracket, a fence with its language, a list's number
# or bullet at the start of a line, a marker. Only the last characters are looked at.
_BEFORE_CALL = re.compile(
    rf"""
    (?: \[
      | (?P<fence>(?:`{{3,}}|~{{3,}})(?=[ \t]?[\w+-]{{0,20}}\Z) | `(?=\Z)) [ \t]?[\w+-]*+
      | (?:^|(?<=\n)) [ \t]*+ (?:[0-9]{{1,4}}[.)] | [-*•])
      | {_OPENING_MARKER}
    ) \Z
    """,
    re.VERBOSE,
)
_MARKER_BEFORE = re.compile(rf"(?:{_OPENING_MARKER})\s*\Z", re.VERBOSE)
_AFTER_CALL = re.compile(rf"[\]}}] | (?P<fence>`{{3,}}|~{{3,}}|`) | {_CLOSING_MARKER}", re.VERBOSE)
_WINDOW = 60


def follows_marker(text: str, piece: Piece) -> bool:
    """Whether a marker stands in front of a loose piece, so that it is known for a call by more than its shape."""
    return _MARKER_BEFORE.search(text[max(0, piece.start - _WINDOW) : piece.start]) is not None


def remaining_prose(text: str, pieces: Sequence[Piece]) -> str:
    """Return the content of `text`: what stands outside the `pieces`, in order, and the words that they hold.

    It is kept as it stands, stripped at its outer ends. Around a loose piece separators, brackets, code fences and list
    numbers go with it, and the words on its two sides become lines of their own.
    """
    if not pieces:
        return text
    prose = _Prose()
    openings = {fence.start for fence in fences_around(text, pieces)}
    previous_end, fence, was_loose = 0, "", False
    for piece in pieces:
        left, right = previous_end, piece.start
        if was_loose:
            left, fence = _skip_after_call(text, left, right, fence)
        if piece.is_loose:
            right, opened = _skip_before_call(text, left, right, openings)
            fence = fence or opened
        prose.add(text[left:right], is_line=was_loose or piece.is_loose)
        for item in piece.items:
            if isinstance(item, Words):
                prose.add(item.text, is_line=False)
        previous_end, was_loose = piece.end, piece.is_loose
    if was_loose:
        previous_end, _ = _skip_after_call(text, previous_end, len(text), fence)
    prose.add(text[previous_end:], is_line=was_loose)
    return prose.text


class _Prose:
    """Words that are put together; blank ones are left out."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def add(self, words: str, *, is_line: bool) -> None:
        if not words or words.isspace():
            return
        if is_line and self._parts:
            self._parts[-1] = self._parts[-1].rstrip()
            self._parts.append("\n")
        self._parts.append(words.strip() if is_line else words)

    @property
    def text(self) -> str:
        return "".join(self._parts).strip()


def _skip_after_call(text: str, start: int, end: int, fence: str) -> tuple[int, str]:
    """Return where the prose after a call begins, and the code fence that is still open there."""
    while True:
        while start < end and text[start] in SEPARATORS:
            start += 1
        found = _AFTER_CALL.match(text, start, end)
        if found is None or (found["fence"] and found["fence"] != fence):
            return start, fence
        if found["fence"]:
            fence = ""
        start = found.end()


def _skip_before_call(text: str, start: int, end: int, openings: Set[int]) -> tuple[int, str]:
    """Return where the prose before a call ends, and the code fence that opens there, at one of the `openings`."""
    fence = ""
    while True:
        near = end
        while start < end and text[end - 1] in SEPARATORS:
            end -= 1
        window = max(start, end - _WINDOW)
        found = _BEFORE_CALL.search(text[window:end])
        if found is None or (found["fence"] and fence) or (found["fence"] == "`" and end < near):
            return end, fence
        if found["fence"] and found["fence"] != "`" and window + found.start("fence") not in openings:
            return end, fence
        fence = fence or found["fence"] or ""
        end = window + found.start()
