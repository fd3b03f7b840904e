"""Whose log entry is it? The log says nothing about requests, so that only an entry without any doubt is used."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pegmend.enginelog import FailureEntry
from pegmend.errors import TurnError, Undeclared
from pegmend.failure import UNNAMED_FORMAT
from pegmend.turn import Turn


@dataclass(frozen=True, slots=True)
class Window:
    """What happened on one engine between the start of a failed request and now.

    `is_covered` tells whether the log was followed all that time. `others` counts the other requests that were under
    way in it, `unclaimed` the earlier failures whose entries never came. `time_fits` tells that the only entry was
    written when the request failed, by the engine's own clock: the log may lag, and hold only another's yet.
    """

    is_covered: bool
    others: int
    unclaimed: int
    entries: Sequence[FailureEntry]
    time_fits: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """A failed request and its window: `format` is what the failure names, `read` reads with the request's tools.

    `needs_time` says that the time of the entry has to fit: there is other evidence to wait for.
    """

    window: Window
    format: str
    read: Callable[[str], Turn]
    needs_time: bool = True

    @property
    def entry(self) -> FailureEntry:
        """The only entry."""
        return self.window.entries[0]


def _calls_undeclared_tool(case: Case) -> bool:
    try:
        case.read(case.entry.remainder)
    except Undeclared:
        return True
    except TurnError:
        return False
    return False


TIME_UNKNOWN = "the entry is not known to be of the same time"
DOUBTS: tuple[tuple[Callable[[Case], bool], str], ...] = (
    (lambda case: not case.window.is_covered, "the log was not followed all the time"),
    (lambda case: case.window.unclaimed > 0, "an earlier failure may be logged only now"),
    (lambda case: case.window.others > 0, "another request was under way"),
    (lambda case: not case.window.entries, "nothing was logged"),
    (lambda case: len(case.window.entries) > 1, "several failures were logged"),
    (lambda case: not case.entry.is_certain, "the entry may have lost text"),
    (lambda case: case.format not in (case.entry.format, UNNAMED_FORMAT), "the entry is about another format"),
    (_calls_undeclared_tool, "the entry calls a tool that the request does not declare"),
    (lambda case: case.needs_time and not case.window.time_fits, TIME_UNKNOWN),
)
"""Reasons not to use an entry; the first that holds is the one that is told."""


def doubt_about(case: Case) -> str | None:
    """Return why the log is not used for a request, None where its entry is the request's for certain."""
    return next((reason for applies, reason in DOUBTS if applies(case)), None)
