"""The reading of a whole raw output, whatever its format: from left to right, one section after the other."""

import re
from collections.abc import Sequence

from pegmend.errors import Ambiguous, TurnError, Unparseable
from pegmend.rawoutput import signs
from pegmend.rawoutput.families import FAMILIES
from pegmend.rawoutput.families.reasoning import find_tag, thinks_around, without_other_thoughts
from pegmend.rawoutput.family import (
    Broken,
    Output,
    Piece,
    Problem,
    Section,
    Thought,
    Tools,
    Words,
    undeclared,
)
from pegmend.rawoutput.fences import fences_around
from pegmend.rawoutput.prose import follows_marker, remaining_prose
from pegmend.rawoutput.quotes import in_code_span
from pegmend.rawoutput.sections import Openings, Sections
from pegmend.turn import ToolCall, Turn

# Engines that print the token which begins a text may print one that ends it as well, behind the first token of the
# text: `<bos>Let<eos> me see`.
_PRINTED_ENDS = re.compile(r"\A<bos>(?:(<[^<>\s]{1,80}>|[^\s<>{}\[\]\"']{0,40})<eos>)?")
# What a cut leaves of a marker behind calls.
_CUT_MARKER = re.compile(r"(?:<\|start\|>\w{0,20}|</?[|｜\w][^\s<>]{0,100}(?:\s[^<>\n]{0,60})?|\[[A-Z_]{0,20}|<)\Z")
_OPENINGS = Openings(FAMILIES)
_OPENINGS_WITHOUT_TOOLS = Openings([family for family in FAMILIES if not family.needs_tools])


def read(raw: str, tools: Tools, *, truncated: bool = False, splits_thoughts: bool = True) -> Turn:
    """Return what the model did in `raw`.

    `raw` is the text as it was generated, `tools` are those that may be called: the name, and the JSON schema of the
    parameters. Without any, only a message to a tool is a call, to an undeclared one. `truncated` says that the engine
    stopped the output (`finish_reason` "length"): an unfinished call at its end is then left out, otherwise it is an
    error. Where the thoughts are not to be split off (`splits_thoughts`), they stand in the content with their tags.

    Raises a TurnError where a call cannot be read, is of an undeclared tool, or may be meant in two ways.
    """
    return _Reading(Output(_PRINTED_ENDS.sub(r"\1", raw), tools, truncated)).turn(splits_thoughts=splits_thoughts)


class _Reading:
    """What has been read of one text."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.text = output.text
        self.tools = output.tools
        self.pieces: list[Piece] = []
        self.calls: list[ToolCall] = []
        self.has_thoughts = False
        # Each of these stands for all of its kind: hostile text can hold millions.
        self.doubt: Problem | None = None
        self.first_broken: Broken | None = None
        self.first_broken_call: Broken | None = None
        self.last_broken: Broken | None = None

    def turn(self, *, splits_thoughts: bool) -> Turn:
        """Read the text. Raises a TurnError."""
        try:
            openings = _OPENINGS if self.tools else _OPENINGS_WITHOUT_TOOLS
            for section in Sections(self.output, openings).between(0, len(self.text)):
                self._add(section)
            fragment = self._unfinished_call()
            if fragment is not None and self.calls:
                self.pieces.append(Piece(fragment, len(self.text), (), is_loose=True))
            pieces = self._with_fences()
            content = self._content(pieces)
            self._check(content)
        except Problem as problem:
            raise self._error(problem) from None
        if not splits_thoughts:
            content = self._content([self._with_raw_thoughts(piece) for piece in pieces])
            return Turn(tuple(self.calls), content, truncated=self.output.truncated)
        thoughts = (item.text for piece in self.pieces for item in piece.items if isinstance(item, Thought))
        return Turn(tuple(self.calls), content, "".join(thoughts).strip(), self.output.truncated)

    def _content(self, pieces: Sequence[Piece]) -> str:
        content = remaining_prose(self.text, pieces)
        if self.calls and self.output.truncated:
            content = _CUT_MARKER.sub("", content).rstrip()
        return content

    def _with_raw_thoughts(self, piece: Piece) -> Piece:
        """Return a piece of thoughts as words, with what marks them."""
        if not piece.items or not all(isinstance(item, Thought) for item in piece.items):
            return piece
        return Piece(piece.start, piece.end, (Words(self.text[piece.start : piece.end]),))

    def _add(self, section: Section) -> None:
        if section.closes_reasoning:
            self._close_reasoning(section)
            return
        self.doubt = self.doubt or section.doubt
        self.pieces += section.pieces
        for piece in section.pieces:
            self.calls += piece.calls
            self.has_thoughts = self.has_thoughts or any(isinstance(item, Thought) for item in piece.items)
            for call in piece.calls:
                if call.name not in self.tools:
                    raise undeclared(call.name, self.tools)
            if piece.calls and not piece.is_loose and in_code_span(self.text, piece.start, piece.end):
                raise Problem(Ambiguous, "A call stands between backticks, as an example does.")
        if section.broken is not None:
            self._note_broken(section.broken)

    def _with_fences(self) -> list[Piece]:
        """Return the pieces, and the marks of the fences that hold marked calls where there is nothing else.

        Raises Problem where a fence may hold an example or a program.
        """
        marks = []
        for fence in fences_around(self.text, self.pieces):
            is_empty = not remaining_prose(self.text[fence.first : fence.last], fence.moved_pieces())
            holds_calls = any(piece.calls for piece in fence.pieces)
            is_marked = any(not piece.is_loose for piece in fence.pieces if piece.calls or not fence.is_closed)
            if holds_calls and not is_empty and (fence.is_closed or is_marked):
                raise Problem(Ambiguous, "A call stands in a code fence beside other text, which may be a program.")
            if is_empty and is_marked:
                marks += [Piece(fence.start, fence.first, ()), Piece(fence.last, fence.end, ())]
        if not marks:
            return self.pieces
        pieces = sorted([*marks, *self.pieces], key=lambda piece: piece.start)
        if remaining_prose(self.text, pieces):
            raise Problem(Ambiguous, "Calls stand in a code fence amid words, as an example does.")
        return pieces

    def _close_reasoning(self, section: Section) -> None:
        """Take all before as reasoning that the prompt had opened, unless it had been closed or a call was made."""
        if self.calls:
            message = "The end of reasoning stands behind a call, so that the call may only have been thought of."
            self.doubt = self.doubt or Problem(Ambiguous, message)
            return
        if not section.pieces:
            return
        (tag,) = section.pieces
        if not self.has_thoughts:
            self.has_thoughts = True
            thought = remaining_prose(self.text[: tag.start], self.pieces).strip().removeprefix("thought\n")
            self.pieces = [Piece(0, tag.end, (Thought(thought),))]
        elif "|" in self.text[tag.start : tag.end]:
            self.pieces.append(tag)  # a control token is no word

    def _note_broken(self, broken: Broken) -> None:
        self.first_broken = self.first_broken or broken
        if broken.is_call:
            self.first_broken_call = self.first_broken_call or broken
        self.last_broken = broken

    def _unfinished_call(self) -> int | None:
        """Return where a call begins that the engine cut. Raises for any other broken call."""
        # Beside calls any broken object may be one; in a text without calls it has to look like one.
        broken = self.first_broken if self.calls else self.first_broken_call
        if broken is None:
            return None
        if broken.is_cut and self.output.truncated and broken is self.last_broken:
            return broken.start
        how = "ends before it is complete" if broken.is_cut else f"is not valid JSON at character {broken.end}"
        raise Problem(Unparseable, f"A tool call that begins at character {broken.start} {how}.")

    def _check(self, content: str) -> None:
        """Raise where calls may be missing, or may be none."""
        if not self.tools:
            return
        if self.calls and self.doubt is not None:
            raise self.doubt
        calls = [piece.start for piece in self.pieces if piece.calls]
        if calls and thinks_around(self.text, calls):
            raise Problem(
                Ambiguous, "A call stands between tags of thoughts, so that it may only have been thought of."
            )
        if self.calls and (thought := find_tag(without_other_thoughts(content))):
            message = f"Calls stand beside {thought!r}, so that some of them may only have been thought of."
            raise Problem(Ambiguous, message)
        if self.has_thoughts and (closing := signs.find_closing_tag(content)):
            raise Problem(Ambiguous, f"{closing!r} stands behind thoughts, so that a call may have begun in them.")
        loose = any(piece.is_loose and piece.calls and not follows_marker(self.text, piece) for piece in self.pieces)
        if sign := signs.find_sign(content, self.tools, beside_calls=bool(self.calls), beside_loose=loose):
            message = f"The model's output holds {sign!r}, which belongs to a tool call that pegmend cannot read."
            raise Problem(Unparseable, message)

    def _error(self, problem: Problem) -> TurnError:
        message = f"{problem.message} None of the calls is delivered. The model's text stands in raw_output."
        return problem.kind(message, raw_output=self.text, calls=self.calls)
