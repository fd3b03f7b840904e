"""A server that answers with given bytes: for what a real engine does not do on demand.

It also keeps what it was sent, to the byte. It has no log.
"""

import socket
import threading
from collections.abc import Callable
from types import TracebackType

HANG = b""
"""An answer that never comes."""


def http_response(status: int, body: bytes, *headers: str, reason: str = "Some Reason") -> bytes:
    """Return a response with odd but valid headers, so that any rewriting of them shows."""
    lines = [f"HTTP/1.1 {status} {reason}", "server: llama.cpp", "X-Odd-CASE: two  spaces", *headers]
    lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def in_turn(*answers: bytes) -> Callable[[bytes], bytes]:
    """Return a function that gives one answer after the other, the last one for ever."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


class CannedUpstream:
    """Answers each request with what `answer` returns for it; stops at the end of a `with` block."""

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        self.requests: list[bytes] = []
        self.hung_up = threading.Event()
        """Set when the other side closes the connection of a request that hangs."""
        self._answer = answer
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self.port}"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            while (request := read_message(connection)) is not None:
                if request.startswith(b"GET /logs"):
                    connection.sendall(http_response(404, b""))
                    continue
                with self._lock:
                    self.requests.append(request)
                    answer = self._answer(request)
                if answer == HANG:
                    connection.recv(1)
                    self.hung_up.set()
                    return
                connection.sendall(answer)
                if b"connection: close" in (request + answer).lower():
                    return

    def __enter__(self) -> "CannedUpstream":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()


def read_message(connection: socket.socket) -> bytes | None:
    """Return one HTTP message with a content length, None at the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        try:
            received = connection.recv(65536)
        except OSError:
            return None
        if not received:
            return None
        data += received
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body
