"""Records: what stands in them, how they are kept, and that reading them again gives the same repair."""

import os
import resource
import socket
import stat
import subprocess
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import httpx
import pytest
from mitmproxy import http
from mitmproxy.io import FlowReader, tnetstring
from mitmproxy.test import tflow

from pegmend import capturefiles
from pegmend.capture import serialized
from pegmend.capturefiles import CaptureFiles
from pegmend.cli import main
from tests.conftest import CHAT_PATH, chat_request
from tests.engine.canned import CannedUpstream, http_response, in_turn
from tests.engine.proxy import ADDON, ROOT, Proxy, mitmdump
from tests.engine.scripts import SCRIPTS
from tests.waiting import wait_until

CAPTURES = sorted((ROOT / "captures").glob("*.mitm"))


def flows_of(path: Path) -> list[http.HTTPFlow]:
    with path.open("rb") as stream:
        return [flow for flow in FlowReader(stream).stream() if isinstance(flow, http.HTTPFlow)]


def flows_in(folder: Path) -> list[http.HTTPFlow]:
    return [flow for path in sorted(folder.iterdir()) for flow in flows_of(path)]


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_the_addon_repairs_a_capture_as_it_did_live(tmp_path: Path, capture: Path) -> None:
    out = tmp_path / "out.mitm"
    command = [mitmdump(), "-q", "-nr", str(capture), "-s", str(ADDON), "-w", str(out)]
    subprocess.run([*command, "--set", f"confdir={tmp_path}"], check=True, timeout=60)
    (live,) = flows_of(capture)
    (again,) = flows_of(out)
    assert live.response is not None
    assert again.response is not None
    assert again.response.get_state() | {"timestamp_end": 0} == live.response.get_state() | {"timestamp_end": 0}
    assert again.metadata == live.metadata
    is_visible = "x-pegmend" in live.response.headers or b"\n: x-pegmend: " in (live.response.content or b"")
    assert is_visible == (not capture.stem.endswith("single"))


def test_replay_command_tells_what_the_repair_gives(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(ROOT / "captures" / "newline.mitm"), str(ROOT / "captures" / "single.mitm")]) == 0
    shown = capsys.readouterr().out
    assert "500 peg-native" in shown
    assert "repaired: write_file, write_file" in shown
    assert "as it is" in shown


def test_replay_command_fails_where_something_stays_unrepaired(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", *map(str, CAPTURES)]) == 1
    assert "error: tool_calls_undeclared" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"no flow file", "damaged after flow 0"), (None, "No such file"), (b"2:{},2:{},", "damaged after flow 0")],
)
def test_replay_command_on_other_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, said: str
) -> None:
    path = tmp_path / "x.mitm"
    if content is not None:
        path.write_bytes(content)
    assert main(["replay", str(path)]) == 2
    assert said in capsys.readouterr().err


def test_replay_command_reads_a_damaged_file_up_to_the_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = (ROOT / "captures" / "newline.mitm").read_bytes()
    (tmp_path / "x.mitm").write_bytes(whole + whole[:500])
    assert main(["replay", str(tmp_path / "x.mitm")]) == 2
    shown = capsys.readouterr()
    assert "repaired: write_file, write_file" in shown.out
    assert "damaged after flow 1" in shown.err


def test_a_repaired_flow_keeps_its_original(start_proxy: Callable[..., Proxy]) -> None:
    proxy = start_proxy()
    with proxy.client() as client:
        response = client.post(
            f"{CHAT_PATH}?api_key=secret1&x=1",
            json=chat_request("newline"),
            headers={
                "Authorization": "Bearer secret2",
                "X-Api-Key": "secret3",
                "Cookie": "secret4",
                "apikey": "secret5",
                "X-Monkey": "ok",
            },
        )
    (path,) = proxy.captures.iterdir()
    (flow,) = flows_in(proxy.captures)
    record = flow.metadata["pegmend"]
    assert flow.response is not None
    assert flow.response.content == response.content
    assert record["original_status"] == 500
    assert b"peg-native" in record["original_body"]
    assert record["raw_output"] == SCRIPTS["newline"]
    assert record["outcome"] == "repaired"
    assert flow.marked
    assert flow.comment == "pegmend: repaired; evidence=replay; calls=2"
    assert b"secret" not in path.read_bytes()
    assert flow.request.path.endswith("&x=1")
    assert flow.request.headers["x-monkey"] == "ok"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(proxy.captures.stat().st_mode) == 0o700


def test_every_exchange_with_the_engine_is_recorded(start_proxy: Callable[..., Proxy]) -> None:
    proxy = start_proxy()
    with proxy.client() as client:
        healthy = client.post(CHAT_PATH, json=chat_request("single"))
        models = client.get("/engines/llama.cpp/v1/models")
        streamed = client.post(CHAT_PATH, json=chat_request("plain", stream=True))
        refused = client.post(CHAT_PATH, content=b"{")
    flows = flows_in(proxy.captures)
    assert [flow.response.content for flow in flows if flow.response] == [
        healthy.content, models.content, streamed.content, refused.content,
    ]  # fmt: skip


def test_exchanges_that_fail_are_recorded(start_proxy: Callable[..., Proxy]) -> None:
    cut = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nabc"
    with CannedUpstream(in_turn(cut)) as upstream:
        proxy = start_proxy(upstream.origin)
        with proxy.client() as client, pytest.raises(httpx.RemoteProtocolError):
            client.post(CHAT_PATH, json=chat_request("x"))
    (flow,) = flows_in(proxy.captures)
    assert flow.error is not None
    assert flow.response is not None
    assert flow.response.raw_content == b"abc"


def test_exchanges_that_the_client_ends_are_recorded(start_proxy: Callable[..., Proxy]) -> None:
    endless = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n"
    with CannedUpstream(in_turn(endless)) as upstream:
        proxy = start_proxy(upstream.origin)
        with socket.create_connection(("127.0.0.1", proxy.reverse_port)) as connection:
            connection.sendall(f"POST {CHAT_PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}".encode())
            received = b""
            while b"abcde" not in received:
                received += connection.recv(65536)
        wait_until(proxy.captures.exists)
        proxy.stop()
    (flow,) = flows_in(proxy.captures)
    assert flow.error is not None
    assert flow.response is not None
    assert flow.response.raw_content == b"abcde"


@pytest.mark.parametrize(("setting", "count"), [("repaired", 2), ("off", 0)])
def test_recording_can_be_limited(start_proxy: Callable[..., Proxy], setting: str, count: int) -> None:
    proxy = start_proxy(options=[f"pegmend_capture={setting}"])
    with proxy.client() as client:
        for script in ("single", "newline", "undeclared"):
            client.post(CHAT_PATH, json=chat_request(script))
    assert len(flows_in(proxy.captures) if proxy.captures.exists() else []) == count


def test_traffic_goes_on_where_nothing_can_be_recorded(start_proxy: Callable[..., Proxy], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    proxy = start_proxy(options=[f"pegmend_capture_dir={tmp_path}/file/captures"])
    with proxy.client() as client:
        for _ in range(3):
            response = client.post(CHAT_PATH, json=chat_request("newline"))
            assert response.headers["x-pegmend"] == "repaired; evidence=replay; calls=2"
    assert proxy.log_text().count("pegmend: cannot record in") == 1


class TestCaptureFiles:
    today = date(2026, 11, 30)

    def test_one_file_a_day_and_by_size(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(capturefiles, "FILE_LIMIT", 10)
        files = CaptureFiles(tmp_path / "a" / "b", 1000)
        tomorrow = date(2026, 12, 1)
        written = [(b"123456", self.today), (b"123456", self.today), (b"1", self.today), (b"1", tomorrow)]
        names = [files.append(record, day).stem for record, day in written]
        assert names == ["pegmend-2026-11-30", "pegmend-2026-11-30", "pegmend-2026-11-30.1", "pegmend-2026-12-01"]
        assert CaptureFiles(tmp_path / "a" / "b", 1000).append(b"2", self.today).read_bytes() == b"12"

    @pytest.mark.parametrize("limit", [40, 100, 1000])
    def test_the_oldest_go_first(self, tmp_path: Path, limit: int) -> None:
        (tmp_path / "notes.mitm").write_bytes(b"x" * 1000)
        files = CaptureFiles(tmp_path, limit)
        for number in range(300):
            path = files.append(b"%09d." % number, self.today)
            os.utime(path, (number, number))
            kept = sorted(tmp_path.glob("pegmend-*"), key=lambda path: path.stat().st_mtime)
            assert sum(one.stat().st_size for one in kept) <= limit
        records = b"".join(one.read_bytes() for one in kept)
        assert records == b"".join(b"%09d." % number for number in range(300))[-len(records) :]
        assert len(records) >= limit // 2
        assert (tmp_path / "notes.mitm").exists()

    def test_a_record_that_does_not_fit_on_the_disk_leaves_the_file_readable(self, tmp_path: Path) -> None:
        files = CaptureFiles(tmp_path, 10**9)
        path = files.append(b"5:whole,", self.today)
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, limit[1]))
        try:
            with pytest.raises(OSError, match="too large"):
                files.append(b"20:" + b"x" * 20 + b",", self.today)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        assert tnetstring.loads(path.read_bytes()) == b"whole"


def test_records_hold_whole_flows_of_any_content(start_proxy: Callable[..., Proxy]) -> None:
    body = bytes(range(256)) * 4
    with CannedUpstream(in_turn(http_response(200, body))) as upstream:
        proxy = start_proxy(upstream.origin)
        with proxy.client() as client:
            client.post(CHAT_PATH, content=body)
        proxy.stop()
    (flow,) = flows_in(proxy.captures)
    exchanged: list[Any] = [flow.request.raw_content, flow.response and flow.response.raw_content]
    assert exchanged == [body, body]


SECRETS = [
    *(
        "Authorization",
        "Proxy-Authorization",
        "X-Api-Key",
        "apikey",
        "key",
        "x-goog-api-key",
        "Ocp-Apim-Subscription-Key",
    ),
    *(
        "X-Password",
        "X-JWT",
        "X-Signature",
        "X-Credential",
        "X-Session-Id",
        "session_id",
        "sig",
        "passwd",
        "accessToken",
    ),
    *("Set-Cookie", "clientsecret", "userKey", "mykey", "X-Amz-Credential", "pwd", "api_key"),
]


@pytest.mark.parametrize("name", SECRETS)
def test_secrets_are_left_out_of_headers_and_queries(name: str) -> None:
    flow = tflow.tflow()
    flow.request.headers[name] = "VALUE1"
    flow.request.path = f"/v1/models?a=b&{name}=VALUE2&c={name}&%{ord(name[0]):x}{name[1:]}=VALUE3=VALUE4&{name}"
    record = serialized(flow)
    assert b"VALUE" not in record
    assert record.count(b"by%20pegmend]") == 2
    assert b"/v1/models?a=b&" in record
    assert b"&c=%b&" % name.encode() in record


@pytest.mark.parametrize("name", ["X-Monkey", "Accept", "design", "assign", "Content-Type", "keen", "stream"])
def test_what_is_no_secret_is_recorded(name: str) -> None:
    flow = tflow.tflow()
    flow.request.headers[name] = "VALUE1"
    flow.request.path = f"/v1/models?{name}=VALUE2&x?y=z"
    record = serialized(flow)
    assert b"VALUE1" in record
    assert flow.request.path.encode() in record


@pytest.mark.parametrize(
    "query", ["key" * 200_000, "&key=x" * 100_000, "?" * 600_000, "%" * 600_000, "auth=" * 100_000]
)
def test_a_long_query_takes_linear_time(query: str) -> None:
    flow = tflow.tflow()
    flow.request.path = f"/v1/models?{query}"
    started = time.perf_counter()
    serialized(flow)
    assert time.perf_counter() - started < 5


def test_passwords_that_other_addons_note_are_left_out(start_proxy: Callable[..., Proxy]) -> None:
    proxy = start_proxy(options=["proxyauth=user:SECRET"])
    with httpx.Client(proxy=proxy.regular.replace("//", "//user:SECRET@"), trust_env=False, timeout=60) as client:
        client.post(f"http://127.0.0.1:{proxy.upstream_port}{CHAT_PATH}", json=chat_request("newline"))
    proxy.stop()
    (path,) = proxy.captures.iterdir()
    assert b"SECRET" not in path.read_bytes()
    assert len(flows_of(path)) == 1
