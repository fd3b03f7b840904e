"""Stands in for Docker Model Runner: its routes and its log in front of a real llama-server.

It passes requests on to the engine as they are, whatever prefix they come with, and gives the engine's log at `/logs`
as Docker Model Runner does: as text, from the beginning, with a time in brackets before every line, and then as it
grows.
"""

import contextlib
import http.client
import threading
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from tests.engine.server import API_PREFIX, Engine

_POLL_SECONDS = 0.01


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Server"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        connection = http.client.HTTPConnection("127.0.0.1", self.server.engine.port)
        route = self.path.partition("/v1/")[2]
        headers = {"Content-Type": "application/json", "Connection": "close"}
        connection.request("POST", f"{API_PREFIX}/v1/{route}", body, headers)
        response = connection.getresponse()
        self.send_response(response.status)
        self.send_header("Content-Type", response.headers["Content-Type"])
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while piece := response.read1(65536):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
        finally:
            connection.close()

    def do_GET(self) -> None:
        if not self.path.startswith("/logs") or not self.server.has_log:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        sent = 0
        while not self.server.is_closing:
            lines = self.server.log_lines[sent:]
            sent += len(lines)
            self.wfile.write(b"".join(lines))
            time.sleep(_POLL_SECONDS)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""

    def handle(self) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            super().handle()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # With the default of 5, a crowd that connects at once overflows the queue, and Linux, which answers with SYN
    # cookies then, resets some of those connections when their request arrives. llama-server's queue holds 512.
    request_queue_size = 512

    def __init__(self, engine: Engine, has_log: bool, delay: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.engine = engine
        self.has_log = has_log
        self.is_closing = False
        self.log_lines: list[bytes] = []
        threading.Thread(target=self._follow, args=(delay,), daemon=True).start()

    def _follow(self, delay: float) -> None:
        with self.engine.log.open("rb") as log:
            partial = b""
            while not self.is_closing:
                *lines, partial = (partial + log.read()).split(b"\n")
                if lines:
                    time.sleep(delay)
                now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()
                self.log_lines += [b"[%b] %b\n" % (now, line) for line in lines]
                time.sleep(_POLL_SECONDS)


class ModelRunner:
    """The running stand-in; stops at the end of a `with` block. `delay` is how late the log is, in seconds."""

    def __init__(self, engine: Engine, *, has_log: bool = True, delay: float = 0) -> None:
        self._server = _Server(engine, has_log, delay)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        """End the server and its connections."""
        self._server.is_closing = True
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> "ModelRunner":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
