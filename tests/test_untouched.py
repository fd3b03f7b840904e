"""What is healthy, or broken in another way, arrives as a direct request would bring it, headers included."""

import gzip
import json
import socket
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.conftest import CHAT_PATH, chat_request
from tests.engine.canned import CannedUpstream, http_response
from tests.engine.proxy import Proxy

SINGLE_CALL = (
    b'{"choices":[{"finish_reason":"tool_calls","index":0,"message":{"role":"assistant","content":"","tool_calls":'
    b'[{"type":"function","function":{"name":"get_time","arguments":"{}"},"id":"mIHjpHCUA3dsqwbyFdZSgfdvsvTFBhd4"}]}}],'
    b'"created":1796056736,"model":"m","object":"chat.completion","id":"chatcmpl-1"}'
)
JSON = "Content-Type: application/json; charset=utf-8"
ANSWERS = {
    "single call": http_response(200, SINGLE_CALL, JSON),
    "plain text": http_response(200, SINGLE_CALL.replace(b"tool_calls", b"stop"), JSON),
    "gzip": http_response(200, gzip.compress(SINGLE_CALL, mtime=0), JSON, "Content-Encoding: gzip"),
    "gzip error": http_response(500, gzip.compress(b'{"error":{"message":"x"}}', mtime=0), "Content-Encoding: gzip"),
    "broken gzip error": http_response(500, b"not gzip", JSON, "Content-Encoding: gzip"),
    "400": http_response(400, b'{"error":{"code":400,"message":"bad request"}}', JSON),
    "404": http_response(404, b"<html>", "Content-Type: text/html"),
    "429": http_response(429, b"{}", JSON, "Retry-After: 1"),
    "500 with another text": http_response(500, b'{"error":{"code":500,"message":"out of memory"}}', JSON),
    "500 that only quotes the sentence": http_response(
        500, b'{"error":{"code":500,"text":"does not match the expected peg-native format"}}', JSON
    ),
    "invalid JSON": http_response(500, b'{"error": does not match the expected peg-native format', JSON),
    "invalid UTF-8": http_response(500, b'{"error":"\xe9 does not match the expected peg-native format"}', JSON),
    "empty body": http_response(500, b""),
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n",
}


def exchange(port: int, request: bytes) -> bytes:
    """Send a request and return the response's bytes, head and body, until the server closes."""
    response = b""
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        connection.sendall(request)
        while received := connection.recv(65536):
            response += received
    return response


def raw_request(target: str, host: str, body: bytes = b"{}") -> bytes:
    head = f"POST {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def answer_asked_for(request: bytes) -> bytes:
    return list(ANSWERS.values())[int(request.split(b"?answer=")[1].split()[0])]


@pytest.fixture(scope="module")
def upstream() -> Iterator[CannedUpstream]:
    with CannedUpstream(answer_asked_for) as running:
        yield running


@pytest.fixture(scope="module")
def canned_proxy(upstream: CannedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with Proxy(upstream.origin, tmp_path_factory.mktemp("proxy")) as running:
        yield running


@pytest.mark.parametrize("way", ["regular", "reverse"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_response_bytes_are_those_of_a_direct_request(
    upstream: CannedUpstream, canned_proxy: Proxy, answer: str, way: str
) -> None:
    path = f"{CHAT_PATH}?answer={list(ANSWERS).index(answer)}"
    host = upstream.origin.removeprefix("http://")
    direct = exchange(upstream.port, raw_request(path, host))
    if way == "regular":
        through = exchange(canned_proxy.regular_port, raw_request(f"{upstream.origin}{path}", host))
    else:
        through = exchange(canned_proxy.reverse_port, raw_request(path, host))
    assert through == direct


def test_a_healthy_turn_of_the_engine_differs_in_nothing_but_ids_and_times(
    direct: httpx.Client, mended: httpx.Client
) -> None:
    for script in ("single", "plain"):
        request = chat_request(script, stream=False)
        ours, theirs = mended.post(CHAT_PATH, json=request), direct.post(CHAT_PATH, json=request)
        assert ours.status_code == theirs.status_code == 200
        assert "x-pegmend" not in ours.headers
        assert list(ours.headers.raw[0:3]) == list(theirs.headers.raw[0:3])
        assert [name for name, _ in ours.headers.raw] == [name for name, _ in theirs.headers.raw]
        for body in (first := ours.json(), second := theirs.json()):
            for member in ("id", "created", "timings", "usage"):
                del body[member]
            for call in body["choices"][0]["message"].get("tool_calls", []):
                del call["id"]
        assert json.dumps(first) == json.dumps(second)


def test_other_failures_of_the_engine_pass(direct: httpx.Client, mended: httpx.Client) -> None:
    for content in (b"{not json", b'{"model":"scripted"}', b'{"messages":"x"}', b""):
        ours = mended.post(CHAT_PATH, content=content)
        theirs = direct.post(CHAT_PATH, content=content)
        assert (ours.status_code, ours.content) == (theirs.status_code, theirs.content)
        assert theirs.status_code >= 400
        assert ours.headers.raw == theirs.headers.raw


def test_requests_without_tools_arrive_to_the_byte(upstream: CannedUpstream, canned_proxy: Proxy) -> None:
    body = b' {"messages" : [ ] , "note":"\xc3\xa9 \\u00e9 \\ud83d\\ude00", "n": 1.00} '
    sent = raw_request(f"{CHAT_PATH}?answer=0", upstream.origin.removeprefix("http://"), body)
    exchange(canned_proxy.reverse_port, sent)
    assert upstream.requests[-1] == sent


def test_traffic_of_others_is_neither_parsed_nor_recorded(
    upstream: CannedUpstream, start_proxy: Callable[..., Proxy]
) -> None:
    proxy = start_proxy("http://127.0.0.1:9", options=["pegmend_upstreams=127.0.0.1:9"])
    body = json.dumps(chat_request("single")).encode()
    host = upstream.origin.removeprefix("http://")
    exchange(proxy.regular_port, raw_request(f"{upstream.origin}{CHAT_PATH}?answer=0", host, body))
    assert upstream.requests[-1].endswith(body)
    assert not proxy.captures.exists()
