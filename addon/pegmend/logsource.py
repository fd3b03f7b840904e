"""Where the engine's log comes from: its bytes, as they are written.

A source is a function that connects and yields pieces. The first one, which may be empty, says that the connection
stands; what was logged before may come first. Where a connection ends, so does the iterator; it raises OSError or
httpx.HTTPError where there is none.
"""

import asyncio
import logging
import os
import shlex
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import httpx

from pegmend.enginelog import EngineLog, FailureEntry

Source = Callable[[], AsyncIterator[bytes]]

logger = logging.getLogger(__name__)

_PIECE = 65_536
_QUEUE_LENGTH = 64
_POLL_SECONDS = 0.05
_COMMAND_START_SECONDS = 3.0
_QUIET_SECONDS = 0.3
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0

# Where Docker Desktop keeps the logs of Docker Model Runner.
_DESKTOP_FOLDERS = {
    "darwin": "Library/Containers/com.docker.docker/Data/log/host",
    "win32": "AppData/Local/Docker/log/host",
}
_DESKTOP_LOG = "inference-llama.cpp-server.log"


def http_source(url: str) -> Source:
    """Return a source that reads `url`: Docker Model Runner's `/logs?follow=true`, which ends with the server."""

    async def pieces() -> AsyncIterator[bytes]:
        timeout = httpx.Timeout(10, read=None)
        async with (
            httpx.AsyncClient(trust_env=False, timeout=timeout, verify=url.startswith("https")) as client,
            client.stream("GET", url) as response,
        ):
            if response.status_code != 200 or not response.headers.get("content-type", "").startswith("text/plain"):
                raise OSError(f"{url} is no log (status {response.status_code})")
            yield b""
            async for piece in response.aiter_raw():
                yield piece

    return pieces


def file_source(path: Path) -> Source:
    """Return a source that reads what is appended to a file, also when it is cut or replaced by a new one."""

    async def pieces() -> AsyncIterator[bytes]:
        is_first = True
        while True:
            with path.open("rb") as stream:
                if is_first:
                    stream.seek(0, os.SEEK_END)
                    yield b""
                is_first = False
                async for piece in _appended(path, stream):
                    yield piece

    return pieces


async def _appended(path: Path, stream: BinaryIO) -> AsyncIterator[bytes]:
    """Yield what is written to an open file until another one has its name."""
    while True:
        if piece := stream.read(_PIECE):
            yield piece
            continue
        await asyncio.sleep(_POLL_SECONDS)
        try:
            now = path.stat()  # noqa: ASYNC240  (one call on a local file)
        except FileNotFoundError:
            continue  # between being renamed and made anew
        opened = os.fstat(stream.fileno())
        if (now.st_dev, now.st_ino) != (opened.st_dev, opened.st_ino):
            while piece := stream.read(_PIECE):
                yield piece
            return
        if now.st_size < stream.tell():
            stream.seek(0)


def command_source(command: Sequence[str]) -> Source:
    """Return a source that reads what a command prints: `docker model logs --follow`."""

    async def pieces() -> AsyncIterator[bytes]:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert process.stdout is not None
        try:
            reading = asyncio.ensure_future(process.stdout.read(_PIECE))
            # A command that has nothing to say yet is taken to be connected after a while.
            await asyncio.wait({reading}, timeout=_COMMAND_START_SECONDS)
            yield b""
            while piece := await reading:
                yield piece
                reading = asyncio.ensure_future(process.stdout.read(_PIECE))
        finally:
            if process.returncode is None:
                process.kill()
            await asyncio.wait({reading}, timeout=1)  # at its end the pipe is closed
            reading.cancel()
            await process.wait()

    return pieces


def first_of(sources: Sequence[Source]) -> Source:
    """Return a source that reads the first of `sources` that can be connected."""

    async def pieces() -> AsyncIterator[bytes]:
        for source in sources:
            is_connected = False
            try:
                async for piece in source():
                    is_connected = True
                    yield piece
            except (OSError, httpx.HTTPError):
                if is_connected:
                    raise
            if is_connected:
                return
        raise OSError("no log of the engine is at hand")

    return pieces


def source_of(setting: str, origin: str, *, is_model_runner: bool) -> Source | None:
    """Return the source that the option `pegmend_log` names for the engine at `origin`, None for "off".

    Raises ValueError where the setting names none.
    """
    kind, _, value = setting.partition(":")
    logs = http_source(f"{origin}/logs?follow=true")
    match kind, value:
        case "off", "":
            return None
        case "http", "":
            return logs
        case "file", path if path:
            return file_source(expanded(path))
        case "command", command if command.strip():
            return command_source(shlex.split(command, posix=os.name != "nt"))
        case "auto", "":
            # Docker's own files and command are about Docker Model Runner, not about any other engine.
            return first_of([logs, *_docker_sources()] if is_model_runner else [logs])
        case _:
            raise ValueError(f"{setting!r} is not one of auto, off, http, file:PATH, command:COMMAND")


def expanded(path: str) -> Path:
    """Return a path with `~` resolved. Raises ValueError where there is no such user."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ValueError(f"{path!r}: {error}") from error


def _docker_sources() -> list[Source]:
    sources = []
    if folder := _DESKTOP_FOLDERS.get(sys.platform):
        sources.append(file_source(Path.home() / folder / _DESKTOP_LOG))
    if docker := shutil.which("docker"):
        sources.append(command_source([docker, "model", "logs", "--follow"]))
    return sources


async def follow(
    source: Source, *, started: Callable[[], None], logged: Callable[[FailureEntry], None], stopped: Callable[[], None]
) -> None:
    """Read a source for ever, with growing pauses where it ends; `logged` is called for each entry after `started`."""
    pause = _FIRST_PAUSE_SECONDS
    while True:
        pieces: asyncio.Queue[bytes | None] = asyncio.Queue(_QUEUE_LENGTH)
        pump = asyncio.create_task(_pump(source, pieces))
        try:
            log = EngineLog()
            if await _skip_history(pieces, log):
                started()
                pause = _FIRST_PAUSE_SECONDS
                while (piece := await pieces.get()) is not None:
                    for entry in log.feed(piece):
                        logged(entry)
        finally:
            stopped()
            pump.cancel()
            await asyncio.wait({pump})  # a command is ended, and waited for
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


async def _pump(source: Source, pieces: "asyncio.Queue[bytes | None]") -> None:
    """Put the pieces of one connection into a queue, and None at its end."""
    try:
        async for piece in source():
            await pieces.put(piece)
    except (OSError, httpx.HTTPError) as error:
        logger.debug("pegmend: the engine's log: %s", error)
    await pieces.put(None)


async def _skip_history(pieces: "asyncio.Queue[bytes | None]", log: EngineLog) -> bool:
    """Wait for the connection and for the first silence, the end of what was logged before; False where it ends."""
    piece = await pieces.get()
    while piece is not None:
        log.feed(piece)
        try:
            piece = await asyncio.wait_for(pieces.get(), _QUIET_SECONDS)
        except TimeoutError:
            return True
    return False
