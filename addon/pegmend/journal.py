"""What one engine's requests and its log did when: the windows in which an entry can belong to a request."""

from dataclasses import dataclass, field

from pegmend.attribution import Window
from pegmend.enginelog import FailureEntry

OWED_SECONDS = 10.0
"""How long after a failure its entry may still come, and be taken for a later request's."""

_ENTRIES_LIMIT = 64
_EARLY_SECONDS = 0.1
_CLOCK_SECONDS = 0.1


@dataclass(slots=True)
class _Request:
    started: float
    failed: float | None = None
    ended: float | None = None
    is_claimed: bool = False

    @property
    def entry_since(self) -> float:
        """Since when its entry can have come: the engine logs a failure and tells it at the same time."""
        return self.started if self.failed is None else max(self.started, self.failed - _EARLY_SECONDS)


@dataclass(slots=True)
class Journal:
    """Times are seconds of one clock that never goes back.

    `covered_since` is the time since which every entry is seen, None while the log is not followed. `offset` is how far
    the engine's clock is behind this one, None until a failure and its entry are known to belong together.
    """

    covered_since: float | None = None
    offset: float | None = None
    _requests: dict[str, _Request] = field(default_factory=dict)
    _entries: list[tuple[float, FailureEntry]] = field(default_factory=list)

    def begin(self, request: str, now: float) -> None:
        """Note that a request goes to the engine."""
        self._requests[request] = _Request(now)

    def fail(self, request: str, now: float) -> None:
        """Note that the engine reported the failure of a request."""
        self._requests[request].failed = now

    def claim(self, request: str) -> None:
        """Note that the entry of a request has come."""
        self._requests[request].is_claimed = True

    def end(self, request: str, now: float) -> None:
        """Note that a request is over, and forget what no window reaches any more."""
        if request in self._requests:
            self._requests[request].ended = now
        oldest = min((one.started for one in self._requests.values() if one.ended is None), default=now) - OWED_SECONDS
        self._requests = {name: one for name, one in self._requests.items() if one.ended is None or one.ended >= oldest}
        self._entries = [(time, entry) for time, entry in self._entries if time >= oldest]

    def log(self, entry: FailureEntry, now: float) -> None:
        """Note an entry that was logged; no window reaches it where no request is under way."""
        if any(one.ended is None for one in self._requests.values()):
            self._entries = [*self._entries[-_ENTRIES_LIMIT:], (now, entry)]

    def start_covering(self, now: float) -> None:
        """Note that every entry is seen from now on."""
        self.covered_since = now

    def stop_covering(self) -> None:
        """Note that the log is not followed any more."""
        self.covered_since = None

    def knows(self, request: str) -> bool:
        """Whether a request was begun here."""
        return request in self._requests

    def window(self, request: str) -> Window:
        """Return what happened since a request began; of the entries, those since it failed."""
        own = self._requests[request]
        others = [one for name, one in self._requests.items() if name != request]
        return Window(
            is_covered=self.covered_since is not None and self.covered_since <= own.started,
            others=sum(one.ended is None or one.ended >= own.started for one in others),
            unclaimed=sum(
                one.failed is not None and not one.is_claimed and one.failed >= own.started - OWED_SECONDS
                for one in others
            ),
            entries=(entries := [entry for time, entry in self._entries if time >= own.entry_since]),
            time_fits=len(entries) == 1 and self._time_fits(own, entries[0]),
        )

    def calibrate(self, request: str, entry: FailureEntry) -> None:
        """Note that an entry is certainly about the failure of a request: both happened at the same time."""
        failed = self._requests[request].failed
        if failed is not None and entry.stamp is not None:
            self.offset = failed - entry.stamp

    def _time_fits(self, request: _Request, entry: FailureEntry) -> bool:
        if self.offset is None or entry.stamp is None or request.failed is None:
            return False
        return abs(entry.stamp + self.offset - request.failed) <= _CLOCK_SECONDS
