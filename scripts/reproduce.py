"""Shows the fault and its repair on an engine that runs already, such as Docker Model Runner.

The report's request, whose answer needs two tool calls, goes to the engine directly and through a pegmend that is
started for it, whole and as a stream; then one that needs a single call does. Exit status: 0 the fault showed and was
repaired, 1 it showed and was not, 2 the engine cannot be asked, 3 the fault did not show.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

TWO_FILES = (
    "Create two files: reports/summary.md with 'Daily summary: all tasks complete.' and logs/log1.txt with "
    "'Log entry 1: system start.'"
)
ONE_FOLDER = "List the folder notes."
SENTENCE = "does not match the expected"
DEFAULT_PATH = "/engines/llama.cpp/v1"
ATTEMPTS = 8
REPAIRED, UNREPAIRED, NO_ENGINE, NO_FAULT = range(4)


def _tool(name: str, description: str, *parameters: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {key: {"type": "string"} for key in parameters}, "required": parameters}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [
    _tool("write_file", "Write a text file.", "path", "content"),
    _tool("read_file", "Read a text file.", "path"),
    _tool("list_directory", "List a folder.", "path"),
]


@dataclass(frozen=True)
class Target:
    """The engine: its origin, the path of its API, the model."""

    origin: str
    path: str
    model: str

    @classmethod
    def parse(cls, base_url: str, model: str) -> Target:
        """Take an origin or a whole base URL."""
        url = httpx.URL(base_url)
        path = url.path.rstrip("/") or DEFAULT_PATH
        return cls(f"{url.scheme}://{url.netloc.decode()}", path, model)

    def ask(self, origin: str, prompt: str, seed: int, *, stream: bool = False) -> httpx.Response:
        """Send one request."""
        request = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "tools": TOOLS,
            "seed": seed,
            "stream": stream,
        }
        return httpx.post(f"{origin}{self.path}/chat/completions", json=request, timeout=600, trust_env=False)


def show(target: Target, two_calls: str, one_call: str, read_log: Callable[[], str] | None = None) -> int:
    """Print both requests, each sent both ways, and return the exit status."""
    with pegmend(target.origin) as mended:
        print(f"Two calls in one turn: POST {target.path}/chat/completions, stream: false\n  {two_calls}")
        status = _show_two_calls(target, mended, two_calls, read_log)
        print("\nThe same with stream: true")
        is_streamed = _show_stream(target, mended, two_calls)
        print(f"\nA single call:\n  {one_call}")
        same = _show_single_call(target, mended, one_call)
    if status == REPAIRED and not (is_streamed and same):
        return UNREPAIRED
    return status


def _show_two_calls(target: Target, mended: str, prompt: str, read_log: Callable[[], str] | None) -> int:
    for seed in range(1, ATTEMPTS + 1):
        direct = target.ask(target.origin, prompt, seed)
        if direct.status_code != 200 and SENTENCE in direct.text:
            break
        print(f"  direct           HTTP {direct.status_code}  {_summary(direct)}  (seed {seed})")
    else:
        print(f"  The fault did not show in {ATTEMPTS} runs.")
        return NO_FAULT
    print(f"  direct           HTTP {direct.status_code}  {direct.json()['error']['message']}")
    if read_log is not None:
        print(f"  engine's log     {read_log()}")
    repaired = target.ask(mended, prompt, seed)
    print(f"  through pegmend  HTTP {repaired.status_code}  x-pegmend: {repaired.headers.get('x-pegmend')}")
    calls = _calls(repaired)
    for call in calls:
        print(f"                   {call[0]} {call[1]}")
    return REPAIRED if repaired.status_code == 200 and calls else UNREPAIRED


def _show_stream(target: Target, mended: str, prompt: str) -> bool:
    direct = _Stream(target.ask(target.origin, prompt, seed=1, stream=True))
    through = _Stream(target.ask(mended, prompt, seed=1, stream=True))
    for name, stream in (("direct", direct), ("through pegmend", through)):
        print(f"  {name:16} {stream.summary}")
        for call in stream.calls:
            print(f"                   {call['name']} {call['arguments']}")
    return bool(through.calls) and not through.error


class _Stream:
    """What a client has at the end of a stream."""

    def __init__(self, response: httpx.Response) -> None:
        self.calls: list[dict[str, str]] = []
        self.error = "" if response.status_code == 200 else response.text
        self.end = "no end"
        events = response.text.split("\n\n")
        for event in events:
            if event.startswith("data: {"):
                self._take(json.loads(event[6:]))
        self.note = "".join(event[2:] for event in events if event.startswith(": x-pegmend"))

    def _take(self, chunk: dict[str, Any]) -> None:
        if "error" in chunk:
            self.error = chunk["error"]["message"]
        for choice in chunk.get("choices", []):
            self.end = choice["finish_reason"] or self.end
            for part in choice["delta"].get("tool_calls") or []:
                if part["index"] == len(self.calls):
                    self.calls.append({"name": "", "arguments": ""})
                call = self.calls[part["index"]]
                call["name"] += part["function"].get("name") or ""
                call["arguments"] += part["function"].get("arguments") or ""

    @property
    def summary(self) -> str:
        """The outcome in one line."""
        return self.error or ", ".join(filter(None, [f"finish_reason {self.end}", self.note]))


def _show_single_call(target: Target, mended: str, prompt: str) -> bool:
    direct = target.ask(target.origin, prompt, seed=1)
    through = target.ask(mended, prompt, seed=1)
    print(f"  direct           HTTP {direct.status_code}  {_summary(direct)}")
    print(f"  through pegmend  HTTP {through.status_code}  {_summary(through)}")
    if SENTENCE in direct.text:
        print("  the model made no single call: nothing to compare")
        return True
    same = direct.status_code == through.status_code and _summary(direct) == _summary(through)
    print("  identical" if same else "  different")
    return same


def _calls(response: httpx.Response) -> list[tuple[str, str]]:
    if response.status_code != 200:
        return []
    message = response.json()["choices"][0]["message"]
    return [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or []]


def _summary(response: httpx.Response) -> str:
    """Everything that matters of a response in one line: no ids, no times."""
    if response.status_code != 200:
        return response.text
    choice = response.json()["choices"][0]
    calls = "; ".join(f"{name} {arguments}" for name, arguments in _calls(response))
    return f"{choice['finish_reason']}: {calls or json.dumps(choice['message']['content'])}"


@contextmanager
def pegmend(upstream: str) -> Iterator[str]:
    """Start a pegmend in front of an engine; the value is the origin to use instead of the engine's."""
    port, reverse_port = _free_port(), _free_port()
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("w+") as log:
        command = [
            *(sys.executable, "-m", "pegmend", "run", "--upstream", upstream),
            *("--port", str(port), "--reverse-port", str(reverse_port)),
            *("--set", f"pegmend_capture_dir={folder}/captures", "--set", f"confdir={folder}/mitmproxy"),
        ]
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait_for(reverse_port, process, Path(log.name))
            yield f"http://127.0.0.1:{reverse_port}"
        finally:
            process.terminate()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.1)
        else:
            return
    sys.exit(f"pegmend does not start:\n{log.read_text()}")


def _check(target: Target) -> str | None:
    """Return what keeps the engine from being asked, None where nothing does."""
    try:
        response = httpx.get(f"{target.origin}{target.path}/models", timeout=10, trust_env=False)
    except httpx.TransportError as error:
        return (
            f"Nothing answers at {target.origin} ({error}). Is Docker Model Runner on, with TCP access? "
            "`docker desktop enable model-runner --tcp 12434` switches it on, `docker model status` tells."
        )
    if response.status_code != 200:
        return f"{target.origin}{target.path}/models answers with status {response.status_code}: is this an engine?"
    names = [model.get("id") for model in response.json().get("data", [])]
    if names and target.model not in names:
        return f"The engine has no model {target.model!r}. It has: {', '.join(map(str, names))}."
    return None


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base-url", default="http://localhost:12434", help="the engine (default: %(default)s)")
    parser.add_argument("--model", default="ai/llama3.1:8B-Q4_K_M", help="default: %(default)s")
    arguments = parser.parse_args()
    target = Target.parse(arguments.base_url, arguments.model)
    if trouble := _check(target):
        print(f"reproduce.py: {trouble}", file=sys.stderr)
        return NO_ENGINE
    return show(target, TWO_FILES, ONE_FOLDER)


if __name__ == "__main__":
    sys.exit(main())
