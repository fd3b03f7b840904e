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
        command: Sequence[str] = (),
        regular_port: int = 0,
        reverse_port: int = 0,
    ) -> None:
        """`upstream` is an origin, `folder` takes captures, configuration and log, `options` are NAME=VALUE.

        `command` stands in place of mitmdump and its modes; it has to listen on the two ports.
        """
        self.regular_port = regular_port or free_port()
        self.reverse_port = reverse_port or free_port()
        self.upstream_port = int(upstream.rpartition(":")[2])
        self.captures = folder / "captures"
        self.log = folder / "mitmdump.log"
        settings = dict(option.split("=", 1) for option in options)
        if with_addon:
            settings.setdefault("pegmend_upstreams", upstream.removeprefix("http://"))
            settings.setdefault("pegmend_capture_dir", str(self.captures))
        arguments = [*(command or self._mitmdump(upstream, with_addon)), "--set", f"confdir={folder / 'conf'}"]
        for name, value in settings.items():
            arguments += ["--set", f"{name}={value}"]
        folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                arguments, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, "PYTHONUNBUFFERED": "1"}
            )
        self._wait_until_ready()

    def _mitmdump(self, upstream: str, with_addon: bool) -> list[str]:
        return [
            mitmdump(),
            *("--mode", f"regular@127.0.0.1:{self.regular_port}"),
            *("--mode", f"reverse:{upstream}@127.0.0.1:{self.reverse_port}"),
            *(("-s", str(ADDON)) if with_addon else ()),
        ]

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
