"""Code fences with calls in them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pegmend.rawoutput.family import Piece

_MARK = re.compile(r"`{3,}")
_LANGUAGE = re.compile(r"[\w+-]{0,20}")


@dataclass(frozen=True, slots=True)
class Fence:
    """A fence from its opening mark to behind its closing one; the `pieces` in it are placed in the text `inside`."""

    start: int
    end: int
    inside: str
    pieces: tuple[Piece, ...]


def fences_around(text: str, pieces: Sequence[Piece]) -> Iterator[Fence]:
    """Yield the closed fences that hold calls. A mark within a piece belongs to that."""
    opened: int | None = None
    held: list[Piece] = []
    for mark_or_piece in _in_order(text, pieces):
        if isinstance(mark_or_piece, Piece):
            held.append(mark_or_piece)
        elif opened is None:
            opened, held = mark_or_piece.start(), []
        else:
            if any(piece.calls for piece in held):
                yield _fence(text, opened, mark_or_piece, held)
            opened = None


def _in_order(text: str, pieces: Sequence[Piece]) -> Iterator["re.Match[str] | Piece"]:
    position = 0
    for piece in pieces:
        yield from _MARK.finditer(text, position, piece.start)
        yield piece
        position = piece.end
    yield from _MARK.finditer(text, position)


def _fence(text: str, start: int, closing: "re.Match[str]", held: Sequence[Piece]) -> Fence:
    mark = _MARK.match(text, start)
    assert mark is not None
    language = _LANGUAGE.match(text, mark.end())
    assert language is not None
    first = min(language.end(), held[0].start)
    moved = tuple(replace(piece, start=piece.start - first, end=piece.end - first) for piece in held)
    return Fence(start, closing.end(), text[first : closing.start()], moved)
