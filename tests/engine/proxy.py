"""Starts and stops a real mitmdump with the addon, or without."""

import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import httpx

from tests.engine.server import free_port

ROOT = Path(__file__).parents[2]
ADDON = ROOT / "addon" / "main.py"
_START_SECONDS = 30


def mitmdump() -> str:
    """Return the path of this environment's mitmdump."""
    suffix = ".exe" if sys.platform == "win32" else ""
    return str(Path(sysconfig.get_path("scripts")) / f"mitmdump{suffix}")


class Proxy:
    """A mitmdump in regular and in reverse mode at once; stops at the end of a `with` block."""

    def __init__(
        self,
        upstream: str,
        folder: Path,
        *,
        options: Sequence[str] = (),
        with_addon: bool = True,
    ) -> None:
        """`upstream` is an origin, `folder` takes captures, configuration and log, `options` are NAME=VALUE."""
        self.regular_port = free_port()
        self.reverse_port = free_port()
        self.captures = folder / "captures"
        self.log = folder / "mitmdump.log"
        settings = [*options]
        if with_addon:
            settings = [
                f"pegmend_upstreams={upstream.removeprefix('http://')}",
                f"pegmend_capture_dir={self.captures}",
                *settings,
            ]
        command = [
            *(mitmdump(), "--set", f"confdir={folder / 'conf'}"),
            *("--mode", f"regular@127.0.0.1:{self.regular_port}"),
            *("--mode", f"reverse:{upstream}@127.0.0.1:{self.reverse_port}"),
            *(("-s", str(ADDON)) if with_addon else ()),
        ]
        for setting in settings:
            command += ["--set", setting]
        folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, "PYTHONUNBUFFERED": "1"}
            )
        self._wait_until_ready()

    @property
    def regular(self) -> str:
        """The URL for HTTP_PROXY."""
        return f"http://127.0.0.1:{self.regular_port}"

    @property
    def reverse(self) -> str:
        """The origin in place of the upstream's."""
        return f"http://127.0.0.1:{self.reverse_port}"

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def log_text(self) -> str:
        """Return what mitmdump has logged so far."""
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
        while time.monotonic() < deadline:
            log = self.log_text()
            if log.count(" listening at") >= 2:
                return
            if self._process.poll() is not None:
                break
            time.sleep(0.05)
        self.stop()
        raise RuntimeError(f"mitmdump does not start:\n{self.log_text()}")

    def client(self, *, reverse: bool = True) -> httpx.Client:
        """Return an HTTP client that goes through one of the two ways in."""
        if reverse:
            return httpx.Client(base_url=self.reverse, trust_env=False, timeout=60)
        return httpx.Client(proxy=self.regular, trust_env=False, timeout=60)

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
