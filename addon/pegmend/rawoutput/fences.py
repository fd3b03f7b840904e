"""Code fences with calls in them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from pegmend.rawoutput.family import Piece

_MARK = re.compile(r"(?P<mark>`{3,}|~{3,})(?P<info>[^`\n]*)")
_LANGUAGE = re.compile(r"[ \t]?[\w+-]{0,20}")
_LINE_WINDOW = 80


@dataclass(slots=True)
class Fence:
    """A fence: its mark begins at `start`, what it holds at `first`; that ends at `last`, the closing mark at `end`.

    A fence that is not closed goes on to the end of the text.
    """

    start: int
    first: int
    last: int
    end: int
    is_closed: bool = False
    pieces: list[Piece] = field(default_factory=list)

    def moved_pieces(self) -> list[Piece]:
        """Return the pieces as they are placed in the text from `first` on."""
        return [replace(one, start=one.start - self.first, end=one.end - self.first) for one in self.pieces]


def fences_around(text: str, pieces: Sequence[Piece]) -> Iterator[Fence]:
    """Yield the outermost fences that hold pieces, in order.

    A mark within a piece belongs to that. A mark opens a fence at the start of a line, in an open one only with a
    language behind it; it closes one if nothing stands behind it.
    """
    marks: list[str] = []  # of the fences that are open, the outermost first
    fence = Fence(0, 0, 0, 0)
    for part in _in_order(text, pieces):
        if isinstance(part, Piece):
            if marks:
                fence.pieces.append(part)
        elif marks and not part["info"].strip() and part["mark"].startswith(marks[-1]):
            marks.pop()
            if not marks and fence.pieces:
                fence.last, fence.end, fence.is_closed = part.start(), part.end("mark"), True
                yield fence
        elif _begins_line(text, part.start()) and not marks:
            marks.append(part["mark"])
            language = _LANGUAGE.match(text, part.end("mark"))
            assert language is not None
            fence = Fence(part.start(), language.end(), len(text), len(text))
        elif _begins_line(text, part.start()) and part["info"].strip():
            marks.append(part["mark"])
    if marks and fence.pieces:
        yield fence


def _in_order(text: str, pieces: Sequence[Piece]) -> Iterator["re.Match[str] | Piece"]:
    position = 0
    for piece in pieces:
        yield from _MARK.finditer(text, position, piece.start)
        yield piece
        position = max(position, piece.end)
    yield from _MARK.finditer(text, position)


def _begins_line(text: str, position: int) -> bool:
    line = text.rfind("\n", max(0, position - _LINE_WINDOW), position) + 1
    before = text[line:position].strip(" \t>")
    return not before or before.endswith("think")
