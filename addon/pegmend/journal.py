"""What one engine's requests and its log did when: the windows in which an entry can belong to a request."""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from math import inf

from pegmend.attribution import Window
from pegmend.enginelog import FailureEntry

OWED_SECONDS = 10.0
"""How long after a failure its entry may still come, and be taken for a later request's."""

_ENTRIES_LIMIT = 64
_ENDED_LIMIT = 256
_EARLY_SECONDS = 0.1
_CLOCK_SECONDS = 0.1


@dataclass(slots=True)
class _Request:
    name: str
    started: float
    failed: float | None = None
    ended: float = inf
    is_claimed: bool = False

    @property
    def entry_since(self) -> float:
        """Since when its entry can have come: the engine logs a failure and tells it at the same time."""
        return self.started if self.failed is None else max(self.started, self.failed - _EARLY_SECONDS)

    @property
    def owed_since(self) -> float:
        """Since when an entry of its is missing."""
        return -inf if self.failed is None or self.is_claimed else self.failed


@dataclass(slots=True)
class Journal:
    """Times are seconds of one clock that never goes back.

    `covered_since` is the time since which every entry is seen, None while the log is not followed. `offset` is how far
    the engine's clock is behind this one, None until a failure and its entry are known to belong together.
    """

    covered_since: float | None = None
    offset: float | None = None
    _requests: dict[str, _Request] = field(default_factory=dict)
    _running: OrderedDict[str, _Request] = field(default_factory=OrderedDict)
    _ended: deque[_Request] = field(default_factory=deque)
    _entries: deque[tuple[float, FailureEntry]] = field(default_factory=lambda: deque(maxlen=_ENTRIES_LIMIT))
    # Of the requests that are forgotten: when the last one ended, and since when the last entry is owed.
    _forgotten_ended: float = -inf
    _forgotten_owed: float = -inf

    def begin(self, request: str, now: float) -> None:
        """Note that a request goes to the engine; one of the same name is over then."""
        self.end(request, now)
        self._requests[request] = self._running[request] = _Request(request, now)

    def fail(self, request: str, now: float) -> None:
        """Note that the engine reported the failure of a request."""
        self._requests[request].failed = now

    def claim(self, request: str) -> None:
        """Note that the entry of a request has come."""
        self._requests[request].is_claimed = True

    def end(self, request: str, now: float) -> None:
        """Note that a request is over, and forget what no window reaches any more."""
        if one := self._running.pop(request, None):
            one.ended = now
            self._ended.append(one)
        oldest = next((one.started for one in self._running.values()), now) - OWED_SECONDS
        # A request that hangs has a window over all that ended since.
        while self._ended and (self._ended[0].ended < oldest or len(self._ended) > _ENDED_LIMIT):
            self._forget(self._ended.popleft())
        while self._entries and self._entries[0][0] < oldest:
            self._entries.popleft()

    def _forget(self, one: _Request) -> None:
        if self._requests[one.name] is one:
            del self._requests[one.name]
        self._forgotten_ended = one.ended
        self._forgotten_owed = max(self._forgotten_owed, one.owed_since)

    def log(self, entry: FailureEntry, now: float) -> None:
        """Note an entry that was logged; no window reaches it where no request is under way."""
        if self._running:
            self._entries.append((now, entry))

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
        others = [one for one in (*self._running.values(), *self._ended) if one is not own]
        owed = own.started - OWED_SECONDS
        return Window(
            is_covered=self.covered_since is not None and self.covered_since <= own.started,
            others=sum(one.ended >= own.started for one in others) + (self._forgotten_ended >= own.started),
            unclaimed=sum(one.owed_since >= owed for one in others) + (self._forgotten_owed >= owed),
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
