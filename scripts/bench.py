"""Measures what pegmend costs, beside a direct connection and a plain mitmdump, in one run.

    streams    latency of the first byte and of each chunk, and the whole turn, at 1, 16 and 64 streams
    recovery   from the engine's failure to the last recovered byte, by the log and by a second run
    bodies     request bodies: MB/s, beside bytes.decode and orjson.loads
    reading    raw output: seconds for 10 MB of hostile text, MB/s for calls and for plain answers
    families   raw output: MB/s for calls in each format, with small and with large arguments
    soak       memory of the proxy over many streamed turns, a third of which fail (not part of a plain run)

usage: python scripts/bench.py [streams] [recovery] [bodies] [reading] [families] [soak [TURNS]]
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import orjson

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "addon")]

from tests.conftest import CHAT_PATH, chat_request  # noqa: E402
from tests.engine import Engine, write_model  # noqa: E402
from tests.engine.proxy import Proxy, mitmdump  # noqa: E402
from tests.engine.scripts import SCRIPTS  # noqa: E402
from tests.engine.server import free_port  # noqa: E402
from tests.families import SAMPLE, TOOLS, WRITERS, Call  # noqa: E402

from pegmend.errors import TurnError  # noqa: E402
from pegmend.rawoutput import read  # noqa: E402
from pegmend.utf8 import read_body  # noqa: E402

CHUNKS = 100
CHUNK_SECONDS = 0.01
STREAMS = (1, 16, 64)
ROUNDS = 5
STREAMING_ADDON = "def responseheaders(flow):\n    flow.response.stream = True\n"


async def serve_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request with a stream whose chunks carry the time at which they were written."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split()[0])
    await reader.readexactly(length)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(CHUNKS):
        delta = {"choices": [{"index": 0, "delta": {"content": " word"}, "finish_reason": None}], "at": time.time_ns()}
        event = b"data: %b\n\n" % json.dumps({**delta, "id": "chatcmpl-" + "x" * 32, "model": "m"}).encode()
        writer.write(b"%x\r\n%b\r\n" % (len(event), event))
        await asyncio.sleep(CHUNK_SECONDS)
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    writer.close()


async def serve(port: int) -> None:
    """Run the upstream of the stream benchmark."""
    server = await asyncio.start_server(serve_stream, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


async def one_stream(port: int) -> tuple[float, list[float], float]:
    """Return the delays of the first and of every chunk, and the time of the whole turn, in milliseconds."""
    started = time.time_ns()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps(chat_request("x", stream=True, seed=1)).encode()
    head = f"POST {CHAT_PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    delays = []
    first = 0.0
    while line := await reader.readline():
        if line.startswith(b"data: {"):
            delays.append((time.time_ns() - json.loads(line[6:])["at"]) / 1e6)
            first = first or (time.time_ns() - started) / 1e6
    writer.close()
    return first, delays, (time.time_ns() - started) / 1e6


async def many_streams(port: int, count: int) -> tuple[float, float, float, float]:
    """Return medians of first byte, chunk delay and whole turn, and the 95th percentile of the chunk delay."""
    results = await asyncio.gather(*(one_stream(port) for _ in range(count)))
    delays = [delay for _, all_delays, _ in results for delay in all_delays]
    return (
        statistics.median(first for first, _, _ in results),
        statistics.median(delays),
        statistics.quantiles(delays, n=20)[-1],
        statistics.median(whole for _, _, whole in results),
    )


def bench_streams(folder: Path) -> None:
    """Print the table of streams."""
    port = free_port()
    script = folder / "streaming.py"
    script.write_text(STREAMING_ADDON)
    upstream = f"http://127.0.0.1:{port}"
    regular, reverse = free_port(), free_port()
    modes = ["--mode", f"regular@127.0.0.1:{regular}", "--mode", f"reverse:{upstream}@127.0.0.1:{reverse}"]
    plain_command = [mitmdump(), "-s", str(script), *modes]
    print(f"streams of {CHUNKS} chunks, one each {CHUNK_SECONDS * 1000:g} ms; milliseconds, medians")
    print(f"{'':18}{'streams':>8}{'first byte':>12}{'chunk':>9}{'chunk p95':>11}{'whole turn':>12}")
    with (
        _upstream_process(port),
        Proxy(
            upstream,
            folder / "plain",
            with_addon=False,
            command=plain_command,
            regular_port=regular,
            reverse_port=reverse,
        ) as plain,
        Proxy(upstream, folder / "pegmend", options=["pegmend_log=off"]) as mended,
    ):
        ways = {"direct": port, "mitmdump": plain.reverse_port, "pegmend": mended.reverse_port}
        for count in STREAMS:
            for name, target in ways.items():
                asyncio.run(many_streams(target, 2))
                rounds = [asyncio.run(many_streams(target, count)) for _ in range(ROUNDS)]
                first, chunk, slow_chunk, whole = map(statistics.median, zip(*rounds, strict=True))
                print(f"{name:18}{count:8}{first:12.2f}{chunk:9.2f}{slow_chunk:11.2f}{whole:12.1f}", flush=True)


@contextlib.contextmanager
def _upstream_process(port: int) -> Iterator[None]:
    """Run the upstream in a process of its own."""
    process = subprocess.Popen([sys.executable, __file__, "serve", str(port)])
    try:
        time.sleep(1.5)
        yield
    finally:
        process.terminate()
        process.wait()


def bench_recovery(folder: Path) -> None:
    """Print the times from failure to recovery."""
    write_model(folder / "scripted.gguf", SCRIPTS, default="newline")
    print("\nrecovery of a streamed turn: from the engine's failure to the last byte; milliseconds, medians of 20")
    with Engine(folder / "scripted.gguf", folder / "log") as engine:
        for name, options in (
            ("by the log", [f"pegmend_log=file:{engine.log}"]),
            ("by a second run", ["pegmend_log=off"]),
        ):
            with Proxy(engine.origin, folder / name, options=options) as proxy, proxy.client() as client:
                client.post(CHAT_PATH, json=chat_request("single"))
                time.sleep(1)
                for script in ("newline", "fifty"):
                    direct = _times(engine.origin, script)
                    through = _times(proxy.reverse, script)
                    more = statistics.median(through) - statistics.median(direct)
                    print(f"{name:18}{script:10} turn {statistics.median(direct):8.1f}   recovery {more:8.1f}")


def _times(origin: str, script: str) -> list[float]:
    times = []
    request = chat_request(script, stream=True, seed=1)
    for _ in range(20):
        started = time.perf_counter()
        httpx.post(f"{origin}{CHAT_PATH}", json=request, timeout=60, trust_env=False)
        times.append((time.perf_counter() - started) * 1000)
    return times


def bench_bodies() -> None:
    """Print how fast request bodies are validated, clean and with an ill-formed byte in each message."""
    print("\nrequest bodies, MB/s")
    print(f"{'':12}{'bytes.decode':>14}{'orjson.loads':>14}{'clean body':>14}{'ill-formed':>14}")
    message = {"role": "user", "content": "Some words, “quoted” and décor, 漢字. " * 5}
    for name, size in (("1 KB", 1_000), ("100 KB", 100_000), ("10 MB", 10_000_000)):
        count = max(1, size // len(json.dumps(message, ensure_ascii=False).encode()))
        clean = json.dumps({"messages": [message] * count}, ensure_ascii=False).encode()
        spoiled = clean.replace("é".encode(), b"\xe9")
        readers: list[Callable[[], object]] = [
            lambda: clean.decode(),  # noqa: B023
            lambda: orjson.loads(clean),  # noqa: B023
            lambda: read_body(clean),  # noqa: B023
            lambda: read_body(spoiled),  # noqa: B023
        ]
        speeds = [len(clean) / 1e6 / _median_seconds(reader, max(3, 2_000_000 // size)) for reader in readers]
        print(f"{name:12}" + "".join(f"{speed:14.1f}" for speed in speeds), flush=True)


def _median_seconds(work: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


HOSTILE = (
    *("{", "[", '{"', '{"a":', '{"a":{', '{"name":"read","parameters":{', '[{"name":"x"},', '"', "{x: ", "```"),
    *(
        "<",
        "<tool_call>",
        "<think>",
        "</think>",
        "<|channel|>",
        "[read(",
        "<function=read>",
        ">>>read\n",
        " \n",
        "read\n",
    ),
)


def bench_reading() -> None:
    """Print how long hostile texts and long turns take to read."""
    print("\nreading raw output")
    call = '{"name": "read", "parameters": {"path": "some/file.txt", "lines": [1, 2, 3]}}'
    calls = "; ".join([call] * 20_000)
    print(f"calls                             {len(calls) / 1e6 / _seconds(calls):8.1f} MB/s")
    answer = "The quick brown fox (it is one) jumps over a[1] < 3; {set} of things, e.g. “these”.\n" * 20_000
    print(f"a plain answer                    {len(answer) / 1e6 / _seconds(answer):8.1f} MB/s")
    for piece in HOSTILE:
        text = (call + piece * (10_000_000 // len(piece)))[:10_000_000]
        print(f"10 MB of {piece!r:25}{_seconds(text):8.1f} s", flush=True)


def _seconds(text: str) -> float:
    started = time.perf_counter()
    with contextlib.suppress(TurnError):
        read(text, {"read": {}})
    return time.perf_counter() - started


def bench_families() -> None:
    """Print how fast the calls of each format are read: many small ones, and one with a large argument."""
    large = Call("read_file", {"path": "def f(x):\n    return x[0] < 3 and {}  # it's\n" * 2_500})
    print(f"\n{'format':22}{'small calls':>14}{'a large one':>14}   MB/s")
    for name, writer in WRITERS.items():
        calls = [call for call in SAMPLE if writer.can_write([call]) and writer.can_tell([call])] * 400
        speeds = []
        for text in (writer.write(calls), writer.write([large])):
            seconds = _median_seconds(lambda: read(text, TOOLS), 3)  # noqa: B023
            speeds.append(len(text) / 1e6 / seconds)
        print(f"{name:22}" + "".join(f"{speed:14.1f}" for speed in speeds), flush=True)


def bench_soak(folder: Path, turns: int) -> None:
    """Print the memory of the proxy while agents run turn after turn."""
    write_model(folder / "scripted.gguf", SCRIPTS, default="newline")
    scripts = ["plain", "single", "newline"]
    print(f"\nmemory of the proxy over {turns} streamed turns, a third of which fail")
    with (
        Engine(folder / "scripted.gguf", folder / "log", arguments=["--parallel", "4", "-c", "32768"]) as engine,
        Proxy(engine.origin, folder, options=[f"pegmend_log=file:{engine.log}"]) as proxy,
    ):

        def run(number: int) -> bool:
            request = chat_request(scripts[number % 3], stream=True)
            with proxy.client() as client:
                text = client.post(CHAT_PATH, json=request).text
            return text.endswith("data: [DONE]\n\n")

        with ThreadPoolExecutor(8) as pool:
            for start in range(0, turns, turns // 10):
                done = list(pool.map(run, range(start, start + turns // 10)))
                print(
                    f"{start + len(done):8} turns   {_resident_mb(proxy.pid):7.1f} MB   all whole: {all(done)}",
                    flush=True,
                )


def _resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def main(arguments: Sequence[str]) -> int:
    """Run the parts that are named, or all but the soak."""
    if arguments[:1] == ["serve"]:
        asyncio.run(serve(int(arguments[1])))
    turns = next((int(argument) for argument in arguments if argument.isdigit()), 10_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts: dict[str, Callable[[], None]] = {
            "streams": lambda: bench_streams(folder),
            "recovery": lambda: bench_recovery(folder),
            "bodies": bench_bodies,
            "reading": bench_reading,
            "families": bench_families,
            "soak": lambda: bench_soak(folder, turns),
        }
        named = [part for part in parts if part in arguments]
        for part in named or [part for part in parts if part != "soak"]:
            parts[part]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
