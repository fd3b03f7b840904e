"""Lets a stream of events pass as it arrives and holds back the event that reports the failure.

Chunks keep their borders. Only an error event without its end, and the first bytes of a line that can still become
one, wait for the next chunk: llama-server writes each event in one piece, so that this happens to no healthy stream of
its own.
"""

import re

from pegmend.failure import Failure, find_failure
from pegmend.sse import data_of_events
from pegmend.tap import Tap

# How a line begins that reports an error: as llama-server writes it, as gateways do, as llama-server did before 2025.
# An event's name comes first: a client that has it already would wait for the data of that event.
_ERROR_LINES = (
    b'data: {"error"',
    b'data:{"error"',
    b'data: { "error"',
    b"event: error",
    b"event:error",
    b"error: {",
)
_LONGEST = max(map(len, _ERROR_LINES))
_EVENT_END = re.compile(rb"\r\n\r\n|\n\r?\n|\r\r")
_EVENT_END_LENGTH = 4

ERROR_LIMIT = 1024 * 1024
"""Bytes of an error event, which held the model's text in old builds. A longer one passes."""


class FailureGate(Tap):
    """A stream callable for mitmproxy that stops at the failure.

    Once `failure` is set, nothing passes any more: what the upstream sends from there on is `held`, and goes out at the
    end of the stream unless somebody empties it. What is put into `ready` goes out after the upstream's end;
    `needs_tail` says that there will be more of that.
    """

    def __init__(self) -> None:
        super().__init__()
        self.failure: Failure | None = None
        self.held = bytearray()
        self.ready: list[bytes] = []
        self.needs_tail = False
        self._in_line = False
        self._in_error = False  # what is held is an error event whose end has not come

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
        if self.failure is not None:
            return self._hold_rest(data)
        # The usual chunk is a whole event that speaks of no error: nothing to look at.
        if data.endswith(b"\n") and not self._in_line and not self.held and b"error" not in data:
            return data
        if self._in_error and not self._ends_error(data):
            return b""
        data = self._release() + data
        start = data.find(b"\n") + 1 or len(data) if self._in_line else 0
        while start < len(data):
            if data.startswith(_ERROR_LINES, start):
                end = _EVENT_END.search(data, start)
                if end is None and len(data) - start < ERROR_LIMIT:
                    self._in_error = True
                    return self._hold(data, start)
                self.failure = _failure_in(data[start : end.end()]) if end else None
                if self.failure is not None:
                    return self._hold(data, start)
                start = end.end() if end else len(data)
            elif _may_become_error(data[start : start + _LONGEST]):
                return self._hold(data, start)
            else:
                start = data.find(b"\n", start) + 1 or len(data)
        self._in_line = not data.endswith(b"\n")
        return data

    def _ends_error(self, data: bytes) -> bool:
        """Whether the error event that is held comes to its end, or becomes too long, with `data`; hold it if not.

        However small the pieces are, each byte is looked at once.
        """
        end = _EVENT_END.search(self.held[-_EVENT_END_LENGTH:] + data)
        if end is not None or len(self.held) + len(data) >= ERROR_LIMIT:
            self._in_error = False
            return True
        self.held += data
        return False

    def _hold_rest(self, data: bytes) -> bytes:
        """After the failure nothing of use comes; a little is kept for the case that the failure goes out after all."""
        if len(self.held) < ERROR_LIMIT:
            self.held += data[:ERROR_LIMIT]
        return b""

    def _hold(self, data: bytes, start: int) -> bytes:
        """Hold back what begins at the start of a line; returns what comes before."""
        self.held, self._in_line = bytearray(data[start:]), False
        return data[:start]

    def _release(self) -> bytes:
        held, self.held = bytes(self.held), bytearray()
        return held


def _may_become_error(beginning: bytes) -> bool:
    """Whether a line that ends with the chunk may be an error when more of it has come."""
    return len(beginning) < _LONGEST and any(line.startswith(beginning) for line in _ERROR_LINES)


def _failure_in(event: bytes) -> Failure | None:
    if event.startswith(b"error: "):
        event = event.replace(b"error", b"data", 1)
    return find_failure(500, next(data_of_events(event), b""))
