"""Lets a stream of events pass as it arrives and holds back the event that reports the failure.

Chunks keep their borders. Only the first bytes of a line that can still become an error event wait for the next chunk:
llama-server writes each event in one piece, so that this happens to no healthy stream of its own.
"""

from pegmend.failure import Failure, find_failure
from pegmend.sse import data_of_events
from pegmend.tap import BODY_LIMIT, Tap

# How a line begins that reports an error: as llama-server writes it, as gateways do, as llama-server did before 2025.
_ERROR_LINES = (b'data: {"error"', b'data:{"error"', b'data: { "error"', b"error: {")
_LONGEST = max(map(len, _ERROR_LINES))


class FailureGate(Tap):
    """A stream callable for mitmproxy that stops at the failure.

    Once `failure` is set, nothing passes any more: what the upstream sends from there on is `held`, and goes out at the
    end of the stream unless somebody empties it. What is put into `ready` goes out after the upstream's end;
    `needs_tail` says that there will be more of that.
    """

    def __init__(self) -> None:
        super().__init__()
        self.failure: Failure | None = None
        self.held = b""
        self.ready: list[bytes] = []
        self.needs_tail = False
        self._in_line = False
        self._in_error = False

    def __call__(self, data: bytes) -> bytes | list[bytes]:
        """Take a chunk from the upstream and return what goes to the client now; b"" is the end."""
        passed = self._pass(data) if data else self._release()
        if not passed:
            return []  # b"" would end the body for mitmproxy
        self.keep(passed)
        return passed

    def take(self) -> list[bytes]:
        """Return what is ready to go out after the upstream's end, and count it as sent."""
        ready, self.ready = self.ready, []
        for chunk in ready:
            self.keep(chunk)
        return ready

    def flush(self) -> bytes:
        """Return what is held back, which goes out after all, and count it as sent."""
        held = self._release()
        self.keep(held)
        return held

    def _pass(self, data: bytes) -> bytes:
        if self._in_error:
            return self._hold(data)
        # The usual chunk is a whole event that speaks of no error: nothing to look at.
        if data.endswith(b"\n") and not self._in_line and not self.held and b"error" not in data:
            return data
        data = self._release() + data
        start = data.find(b"\n") + 1 if self._in_line else 0
        while start < len(data) and (start > 0 or not self._in_line):
            beginning = data[start : start + _LONGEST]
            if beginning.startswith(_ERROR_LINES):
                self._in_error = True
                return data[:start] + self._hold(data[start:])
            if start + len(beginning) == len(data) and any(line.startswith(beginning) for line in _ERROR_LINES):
                self.held, self._in_line = beginning, False
                return data[:start]
            start = data.find(b"\n", start) + 1 or len(data)
        self._in_line = not data.endswith(b"\n")
        return data

    def _hold(self, data: bytes) -> bytes:
        """Keep an error event back until it is whole; let it go where it is another error."""
        self.held += data
        if self.failure is not None:
            return b""
        event = next(data_of_events(self.held.replace(b"error: ", b"data: ", 1)), None)
        if event is None and len(self.held) < BODY_LIMIT:
            return b""
        self.failure = find_failure(500, event or b"")
        if self.failure is not None:
            return b""
        self._in_error = False
        self._in_line = not self.held.endswith(b"\n")
        return self._release()

    def _release(self) -> bytes:
        held, self.held = self.held, b""
        return held
