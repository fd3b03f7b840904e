"""Thoughts between tags: what stands in them is never a call."""

import re
from bisect import bisect
from collections.abc import Iterator, Sequence

from pegmend.errors import Ambiguous
from pegmend.rawoutput.family import Family, Output, Piece, Problem, Reader, Section, Thought
from pegmend.rawoutput.quotes import find_unquoted, is_quoted
from pegmend.rawoutput.sections import Openings, Sections
from pegmend.rawoutput.signs import find_marker

# Opening tag -> closing tag, and the models that write them.
_TAGS = {
    r"<think>": r"</think(?:ing)?>",  # most
    r"<thinking>": r"</think(?:ing)?>",
    r"\[THINK\]": r"\[/THINK\]",  # Magistral, Ministral
    r"<seed:think>": r"</seed:think>",  # Seed-OSS
    r"<mm:think>": r"</mm:think>",  # MiniMax M3
    r"<think:\w+>": r"</think:\w+>",  # Hunyuan Hy3
    r"<ifm\|think\w*>": r"</ifm\|think\w*>",  # K2 Horizon
    r"<\|channel>(?:thought\b)?": r"<channel\|>",  # Gemma 4
    r"<\|START_THINKING\|>": r"<\|END_THINKING\|>",  # Command R7B, Command A
    r"<\|plamo:begin_think:plamo\|>": r"<\|plamo:end_think:plamo\|>",
    r"<\|open\|>\s*think\s*<\|sep\|>": r"<\|close\|>\s*think\s*<\|sep\|>",  # Kimi K3
}
# A closing tag whose opening is a sentence in the prompt: Apriel.
_CLOSING_ONLY = r"\[BEGIN\ FINAL\ RESPONSE\]"
_CLOSINGS = [*_TAGS.values(), _CLOSING_ONLY]
_PAIRS = [(re.compile(opening), re.compile(closing)) for opening, closing in _TAGS.items()]
_OPENING = "|".join(_TAGS)
_CLOSING = re.compile("|".join(_CLOSINGS), re.VERBOSE)
# Tags of thoughts that no family here writes: what stands beside them is not certain.
_OTHER_TAGS = r"""
    </?(?:reasoning|thoughts?|analysis|reflection|scratchpad)> | <think\s[^<>]*> | ◁/?think▷
  | <\|(?:begin|end)_of_thought\|>
"""
_OTHER_PAIR_TAG = re.compile(r"<(?P<closes>/?)(?P<name>reasoning|thoughts?|analysis|reflection|scratchpad)>")
_TAG = re.compile("|".join([*_TAGS, *_CLOSINGS, _OTHER_TAGS]), re.IGNORECASE | re.VERBOSE)

_AT_END = re.compile(rf"(?:{_OPENING})\s*\Z|>>>\Z")
_TAG_WINDOW = 100
_WORD = re.compile(r"\S")


def find_tag(text: str) -> str | None:
    """Return the first opening or closing tag in `text`, but for those that stand between quotes."""
    found = find_unquoted(_TAG, text)
    return found.group() if found else None


def thinks_around(text: str, places: Sequence[int]) -> bool:
    """Whether any of the places, which are in order, stands between tags of thoughts that no family here writes."""
    for start, end in _other_pairs(text):
        following = bisect(places, start)
        if following < len(places) and places[following] < end:
            return True
    return False


def without_other_thoughts(text: str) -> str:
    """Return a text without the thoughts between tags that no family here writes."""
    outside = []
    position = 0
    for start, end in sorted(_other_pairs(text)):
        outside.append(text[position:start])
        position = max(position, end)
    outside.append(text[position:])
    return "".join(outside)


def _other_pairs(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the tags begin and end that an opening and the next closing one of the same name enclose."""
    opened: dict[str, int] = {}
    for tag in _OTHER_PAIR_TAG.finditer(text):
        if not tag["closes"]:
            opened.setdefault(tag["name"], tag.start())
        elif tag["name"] in opened:
            yield opened.pop(tag["name"]), tag.end()


def opened_at_end(prompt: str) -> str:
    """Return the opening tag that a prompt ends with, and the white space behind it; "" where there is none."""
    found = _AT_END.search(prompt[-_TAG_WINDOW:])
    return found.group() if found else ""


def answer_of(raw: str) -> str:
    """Return what follows the thoughts at the head of a raw output."""
    start = len(raw) - len(raw.lstrip())
    for opening, closing in _PAIRS:
        if tag := opening.match(raw, start):
            end = closing.search(raw, tag.end())
            return raw[end.end() :].lstrip() if end else ""
    return raw


def ended_by(families: Sequence[Family]) -> Family:
    """Return the family of thoughts that may end, without a closing tag, where a section of `families` begins."""
    call = re.compile(
        "|".join(f"(?:{family.opening})" for family in families if family.ends_reasoning), re.VERBOSE | re.MULTILINE
    )
    openings = Openings(families)
    return Family("reasoning", _OPENING, lambda output: _Thoughts(output, call, openings).section, needs_tools=False)


class _Thoughts:
    """The thoughts of one text that begin with a tag."""

    def __init__(self, output: Output, call: re.Pattern[str], openings: Openings) -> None:
        self.text = output.text
        self.is_cut = output.truncated
        self.call = None if output.truncated else call
        self.inner: Sections | None = Sections(output, openings) if output.tools else None
        self.unclosed: set[re.Pattern[str]] = set()
        self.only_quoted: set[re.Pattern[str]] = set()

    def section(self, start: int) -> Section:
        """Read from an opening tag. Amid prose one that is never closed is just text; at the head all is thought."""
        text = self.text
        opening, closing = next(pair for pair in _PAIRS if pair[0].match(text, start))
        tag = opening.match(text, start)
        assert tag is not None
        if is_quoted(tag):
            return Section(tag.end())
        end = self._end(closing, tag.end())
        if end is not None:
            if self._tears_call(tag.end(), end.start()):
                message = f"{end.group()!r} stands amid a call that begins in thoughts, which may be none."
                raise Problem(Ambiguous, message)
            thought = text[tag.end() : end.start()]
            if self.call and opening.search(thought) and self.call.search(thought):
                raise Problem(Ambiguous, "Thoughts begin again behind a call, which may only have been thought of.")
            return Section(end.end(), (Piece(start, end.end(), (Thought(thought),)),), doubt=self._doubt(closing))
        self.unclosed.add(closing)
        if _WORD.search(text, 0, start):
            return Section(tag.end())
        # Where the engine cut the text, the closing tag may have been to come.
        begun = self.call.search(text, tag.end()) if self.call else None
        stop = begun.start() if begun else len(text)
        if self.call and (marker := find_marker(text[tag.end() : stop])):
            raise Problem(Ambiguous, f"Thoughts that never end hold {marker!r}: a call may only have been thought of.")
        return Section(stop, (Piece(start, stop, (Thought(text[tag.end() : stop]),)),))

    def _end(self, closing: re.Pattern[str], start: int) -> re.Match[str] | None:
        """Return the tag that closes thoughts: one between quotes only if there is no other."""
        # Where a tag is not closed, none behind it is: the search goes over the rest of the text once.
        if closing in self.unclosed:
            return None
        end = None if closing in self.only_quoted else find_unquoted(closing, self.text, start)
        if end is None:
            self.only_quoted.add(closing)
            end = None if self.is_cut else closing.search(self.text, start)
        return end

    def _doubt(self, closing: re.Pattern[str]) -> Problem | None:
        if closing not in self.only_quoted:
            return None
        return Problem(Ambiguous, "Thoughts end at a tag in quotes, so that a call may only have been thought of.")

    def _tears_call(self, start: int, end: int) -> bool:
        """Whether a call begins in these thoughts and ends behind them, so that their closing tag is part of it."""
        try:
            return self.inner is not None and any(
                piece.calls and piece.end > end
                for section in self.inner.between(start, end)
                for piece in section.pieces
            )
        except Problem:
            self.inner = None  # nothing is read twice, or the time would not be linear
            return False


def _closed(output: Output) -> Reader:
    """Read closing tags without an opening one, which stands in the prompt then."""
    text = output.text

    def read(start: int) -> Section:
        tag = _CLOSING.match(text, start)
        assert tag is not None
        pieces = () if is_quoted(tag) else (Piece(start, tag.end(), ()),)
        return Section(tag.end(), pieces, closes_reasoning=True)

    return read


CLOSED = Family("end_of_reasoning", "|".join(_CLOSINGS), _closed, needs_tools=False)
