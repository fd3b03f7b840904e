"""The sources of the log: real files, real processes, a real server."""

import asyncio
import contextlib
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from pegmend import logsource
from pegmend.logsource import Source, command_source, file_source, first_of, follow, http_source, source_of

_START = b"0.04.087.978 W common_chat_peg_parse: unparsed peg-native output: "
ENTRY = _START + b"%b\n0.04.087.979 W srv stop: cancel task, id_task = 1\n"


class Following:
    """A source that is followed: what happened so far."""

    def __init__(self) -> None:
        self.events: list[str] = []

        self._changed = asyncio.Event()

    async def until(self, *events: str) -> None:
        async with asyncio.timeout(20):
            while self.events[-len(events) :] != list(events):
                await self._changed.wait()
                self._changed.clear()

    def note(self, event: str) -> None:
        self.events.append(event)
        self._changed.set()


def following(source: Source, scenario: Callable[[Following], Awaitable[None]]) -> list[str]:
    """Run a scenario while a source is followed, and return what happened."""

    async def run() -> list[str]:
        seen = Following()
        task = asyncio.create_task(
            follow(
                source,
                started=lambda: seen.note("started"),
                logged=lambda entry: seen.note(entry.remainder),
                stopped=lambda: seen.note("stopped"),
            )
        )
        await scenario(seen)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return seen.events

    return asyncio.run(run())


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logsource, "_FIRST_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(logsource, "_COMMAND_START_SECONDS", 0.5)


def append(path: Path, name: str) -> None:
    with path.open("ab") as stream:
        stream.write(ENTRY % name.encode())


def test_a_file_from_its_end_on_over_rotation_and_truncation(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    append(path, "history")

    async def scenario(seen: Following) -> None:
        await seen.until("started")
        append(path, "a")
        await seen.until("a")
        append(path, "last before rotation")
        path.rename(tmp_path / "engine.log.1")
        await asyncio.sleep(0.2)
        append(path, "b")
        await seen.until("last before rotation", "b")
        path.write_bytes(b"")
        await asyncio.sleep(0.2)
        append(path, "c")
        await seen.until("c")

    assert following(file_source(path), scenario) == ["started", "a", "last before rotation", "b", "c", "stopped"]


def test_a_file_that_comes_later(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"

    async def scenario(seen: Following) -> None:
        await seen.until("stopped", "stopped")
        path.touch()
        await seen.until("started")
        append(path, "a")
        await seen.until("a")

    assert following(file_source(path), scenario)[-3:] == ["started", "a", "stopped"]


def test_a_command_that_dies_is_started_again(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    append(path, "history")
    command = command_source(["tail", "-n", "+1", "-f", str(path)])

    async def scenario(seen: Following) -> None:
        await seen.until("started")
        append(path, "a")
        await seen.until("a")
        await (await asyncio.create_subprocess_exec("pkill", "-f", f"tail -n .1 -f {path}")).wait()
        await seen.until("stopped", "started")
        append(path, "b")
        await seen.until("b")

    assert following(command, scenario) == ["started", "a", "stopped", "started", "b", "stopped"]


def test_a_command_that_is_silent_at_first() -> None:
    code = "import sys, time; time.sleep(1.5); sys.stdout.buffer.write({!r}); sys.stdout.flush(); time.sleep(60)"
    command = command_source([sys.executable, "-c", code.format(ENTRY % b"a")])

    async def scenario(seen: Following) -> None:
        await seen.until("started", "a")

    assert following(command, scenario) == ["started", "a", "stopped"]


@pytest.mark.parametrize("command", [["/nowhere/command"], [sys.executable, "-c", "raise SystemExit(1)"]])
def test_a_command_that_does_not_start_is_tried_again(command: list[str]) -> None:
    async def scenario(seen: Following) -> None:
        await seen.until("stopped", "stopped", "stopped")

    assert set(following(command_source(command), scenario)) == {"stopped"}


class _LogHandler(BaseHTTPRequestHandler):
    content_type = "text/plain; charset=utf-8"
    lines: threading.Condition = threading.Condition()
    entries: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", self.content_type)
        self.end_headers()
        sent = 0
        while True:
            with self.lines:
                new = self.entries[sent:]
                if not new:
                    self.lines.wait(5)
            if "end" in new:
                type(self).entries = [entry for entry in self.entries if entry != "end"]
                return
            self.wfile.write(b"".join(ENTRY % entry.encode() for entry in new))
            sent += len(new)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def log_server() -> "AsyncIterator[ThreadingHTTPServer]":
    server = ThreadingHTTPServer(("127.0.0.1", 0), _LogHandler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server  # type: ignore[misc]
    server.shutdown()
    server.server_close()


def say(entry: str) -> None:
    with _LogHandler.lines:
        _LogHandler.entries.append(entry)
        _LogHandler.lines.notify_all()


def test_a_server_whose_history_is_skipped_each_time(log_server: ThreadingHTTPServer) -> None:
    say("history")
    source = http_source(f"http://127.0.0.1:{log_server.server_address[1]}/logs?follow=true")

    async def scenario(seen: Following) -> None:
        await seen.until("started")
        say("a")
        await seen.until("a")
        say("end")
        await seen.until("stopped", "started")
        say("b")
        await seen.until("b")

    assert following(source, scenario) == ["started", "a", "stopped", "started", "b", "stopped"]


def test_the_first_that_connects(log_server: ThreadingHTTPServer, tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    path.touch()
    nowhere = http_source("http://127.0.0.1:9/logs")
    missing = file_source(tmp_path / "missing.log")

    async def scenario(seen: Following) -> None:
        await seen.until("started")
        append(path, "a")
        await seen.until("a")

    assert following(first_of([nowhere, missing, file_source(path)]), scenario) == ["started", "a", "stopped"]


@pytest.mark.parametrize("setting", ["", "on", "file:", "command: ", "http:x", "auto:x"])
def test_a_setting_that_names_no_source(setting: str) -> None:
    with pytest.raises(ValueError, match="is not one of auto, off, http, file:PATH, command:COMMAND"):
        source_of(setting, "http://localhost", is_model_runner=True)


def test_off_is_no_source() -> None:
    assert source_of("off", "http://localhost", is_model_runner=True) is None
