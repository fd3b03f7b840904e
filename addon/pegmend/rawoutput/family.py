"""What a format family is to the reader: how its parts begin, and how one is read.

A raw output is read from left to right. Where a family's `opening` matches, its `read` takes a section from there: the
calls, and what else belongs to it. The text between sections is content. What stands inside a section is its own
affair, so that a marker in an argument opens nothing.

Most families are a grammar: a generator that moves a Cursor and yields each call as soon as it is complete.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from pegmend.errors import TurnError, Undeclared, Unparseable
from pegmend.rawoutput.cursor import Cursor, Cut, Malformed, NoCall
from pegmend.rawoutput.signs import find_closing_tag, find_marker
from pegmend.rawoutput.tools import Tools as Tools
from pegmend.turn import ToolCall


@dataclass(frozen=True, slots=True)
class Output:
    """A raw output: the text, the tools that may be called, and whether the engine cut it."""

    text: str
    tools: Tools
    truncated: bool


@dataclass(frozen=True, slots=True)
class Words:
    """Content that a family marks as such."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """Reasoning."""

    text: str


Item = ToolCall | Words | Thought
Grammar = Callable[[Cursor, Tools], Iterator[Item]]


class Problem(Exception):
    """Something that only looks like a call, and the error that it is if it stands where calls stand."""

    def __init__(self, kind: type[TurnError], message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


def undeclared(name: str, tools: Tools) -> Problem:
    """Return the error for a call to a tool that may not be called."""
    allowed = ", ".join(sorted(tools)[:20]) or "none"
    message = f"The model called {name!r}, which the request does not allow it to call (allowed: {allowed})."
    return Problem(Undeclared, message)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text that is not plain content, and what is in it.

    `is_loose` says that what only holds a call may stand around it: brackets, separators, code fences, list numbers.
    """

    start: int
    end: int
    items: tuple[Item, ...]
    is_loose: bool = False

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls in it, in order."""
        return tuple(item for item in self.items if isinstance(item, ToolCall))


@dataclass(frozen=True, slots=True)
class Broken:
    """Something that begins at `start` like a call and cannot be read beyond `end`.

    `is_cut` says that only the end of the text came too early, `is_call` that it is a call for certain; otherwise it
    may be one, and is taken for one beside calls.
    """

    start: int
    end: int
    is_cut: bool
    is_call: bool


@dataclass(frozen=True, slots=True)
class Section:
    """What was read from an opening up to `end`. Without pieces, that is just text.

    `doubt` is the error of a turn that holds any call. `closes_reasoning` says that all before it was reasoning, which
    the prompt had opened; without a piece for the tag, that is only told of.
    """

    end: int
    pieces: tuple[Piece, ...] = ()
    broken: Broken | None = None
    doubt: Problem | None = None
    closes_reasoning: bool = False


_CUT_TAIL = 100
"""Characters: more is no unfinished tag or name."""

Reader = Callable[[int], Section]
"""Reads the section that begins at a place of one text. The places only ever grow."""


@dataclass(frozen=True)
class Family:
    """A format.

    `opening` is the source of a regular expression (verbose, multi-line) for the places where a section begins: at one
    of the characters `<[{>]`, or at the start of a line. `reader` is called once for a text.
    `ends_reasoning` says that models of the family leave their thoughts for a call without closing them first,
    `needs_tools` that a text is not looked at where no tool may be called.
    """

    name: str
    opening: str
    reader: Callable[[Output], Reader] = field(repr=False)
    ends_reasoning: bool = False
    needs_tools: bool = True


def _is_cut(output: Output, position: int) -> bool:
    """Whether what stands from here on is what the engine's cut has left of a call."""
    tail = output.text[position:]
    if not output.truncated or len(tail) > _CUT_TAIL or "\n" in tail.strip():
        return False
    return not find_marker(tail[2:]) and not find_closing_tag(tail)


def _cut_section(output: Output, start: int, done: int, items: Sequence[Item]) -> Section:
    """Return the section up to the end of the text, with the items that were complete at `done`."""
    end = len(output.text)
    return Section(end, (Piece(start, end, tuple(items)),), Broken(done, end, is_cut=True, is_call=True))


def by_grammar(grammar: Grammar, *, may_be_empty: bool = False) -> Callable[[Output], Reader]:
    """Return the `reader` of a family whose sections a grammar describes; it has to find something in them or fail."""

    def read(output: Output, start: int) -> Section:
        cursor = Cursor(output.text, start, truncated=output.truncated)
        items: list[Item] = []
        done = start
        try:
            for item in grammar(cursor, output.tools):
                items.append(item)
                done = cursor.position
        except NoCall:
            return Section(max(cursor.position, start + 1))
        except Malformed as malformed:
            if _is_cut(output, cursor.position):
                return _cut_section(output, start, done, items)
            message = f"A tool call that begins at character {done} cannot be read: {malformed}."
            raise Problem(Unparseable, message) from None
        except Cut:
            return _cut_section(output, start, done, items)
        if not items and not may_be_empty:
            if _is_cut(output, cursor.position):
                return _cut_section(output, start, done, items)
            raise Problem(Unparseable, f"What begins at character {start} like a tool call holds none.")
        return Section(cursor.position, (Piece(start, cursor.position, tuple(items)),))

    return lambda output: partial(read, output)
