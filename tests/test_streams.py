"""Streamed turns, on the real engine through a real mitmdump."""

import json
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import openai
import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection

from pegmend.recovery import PING_SECONDS
from tests.conftest import CHAT_PATH, chat_request
from tests.engine import Engine
from tests.engine.canned import HANG, CannedUpstream, http_response, in_turn
from tests.engine.proxy import Proxy
from tests.engine.scripts import SCRIPTS, SEPARATED
from tests.engine.streams import Streamed, accumulate
from tests.test_recovery import BOTH_FILES, TURNS, Call
from tests.waiting import wait_until

REPLAYED = "x-pegmend: repaired; evidence=replay; calls={}"


def stream(client: httpx.Client, script: str, **members: Any) -> Streamed:
    response = client.post(CHAT_PATH, json=chat_request(script, stream=True, **members))
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream"
    return accumulate(response.text)


@pytest.mark.parametrize(("script", "calls", "content"), TURNS)
def test_a_failed_stream_is_completed(
    engine: Engine, mended: httpx.Client, script: str, calls: list[Call], content: str | None
) -> None:
    with httpx.Client(base_url=engine.origin, trust_env=False, timeout=60) as direct:
        failed = stream(direct, script)
    assert len(failed.errors) == 1
    assert not failed.is_done
    streamed = stream(mended, script)
    assert streamed.calls == calls
    assert not streamed.errors
    assert streamed.is_done
    assert streamed.finish_reasons == {0: "tool_calls"}
    assert streamed.comments == [REPLAYED.format(len(calls))]
    assert len(streamed.heads) == 1
    assert len(set(streamed.ids)) == len(calls)
    assert streamed.messages[0]["role"] == "assistant"
    # What held the calls together may have gone out as content before the failure: "[", "1.", "```json".
    words = streamed.messages[0]["content"]
    assert "name" not in words
    if content is not None:
        assert words.split() == content.split()
    elif script not in ("array", "fences", "list"):
        assert words == ""


def test_usage_comes_if_it_was_asked_for(mended: httpx.Client) -> None:
    with_usage = stream(mended, "newline", stream_options={"include_usage": True})
    assert with_usage.usage is not None
    assert with_usage.usage["completion_tokens"] > 0
    assert stream(mended, "newline").usage is None


def test_several_choices(mended: httpx.Client) -> None:
    streamed = stream(mended, "newline", n=2)
    for message in streamed.messages.values():
        assert [call["function"]["name"] for call in message["tool_calls"]] == ["write_file", "write_file"]
    assert streamed.finish_reasons == {0: "tool_calls", 1: "tool_calls"}
    assert len(set(streamed.ids)) == 4


@pytest.mark.parametrize("script", ["braces", "json-answer"])
def test_a_text_without_calls_goes_on_as_text(mended: httpx.Client, script: str) -> None:
    streamed = stream(mended, script)
    assert streamed.messages[0] == {"role": "assistant", "content": SCRIPTS[script][0]}
    assert streamed.finish_reasons == {0: "stop"}


def test_a_stream_that_max_tokens_cuts(mended: httpx.Client) -> None:
    usage = stream(mended, "newline", stream_options={"include_usage": True}).usage
    assert usage is not None
    streamed = stream(mended, "newline", max_tokens=usage["completion_tokens"] - 4)
    assert streamed.calls == BOTH_FILES[:1]
    assert streamed.finish_reasons == {0: "length"}


@pytest.mark.parametrize(
    ("script", "code"),
    [("broken", "tool_calls_unparseable"), ("cut", "tool_calls_unparseable"), ("undeclared", "tool_calls_undeclared")],
)
def test_what_cannot_be_proven_is_one_error_event(mended: httpx.Client, script: str, code: str) -> None:
    streamed = stream(mended, script)
    assert [error["code"] for error in streamed.errors] == [code]
    assert streamed.errors[0]["raw_output"] == SCRIPTS[script][0]
    assert not streamed.is_done
    assert not streamed.finish_reasons
    assert streamed.comments == [f"x-pegmend: error; evidence=replay; calls=0; code={code}"]


def chunks_of(port: int, host: str, script: str) -> list[bytes]:
    """Return the chunks of a chunked response as they stand on the wire."""
    body = json.dumps(chat_request(script, stream=True, seed=1)).encode()
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        head = f"POST {CHAT_PATH} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        data = b""
        while received := connection.recv(65536):
            data += received
    rest = data.partition(b"\r\n\r\n")[2]
    chunks = []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        chunks.append(rest[: int(size, 16)])
        rest = rest[int(size, 16) + 2 :]
    return chunks


@pytest.mark.parametrize("script", ["single", "plain"])
def test_healthy_streams_keep_their_chunks(engine: Engine, proxy: Proxy, script: str) -> None:
    direct = chunks_of(engine.port, "x", script)
    through = chunks_of(proxy.reverse_port, "x", script)

    def events_in(chunks: list[bytes]) -> list[int]:
        # TCP may cut a chunk on a slow machine; what counts is that nothing waits for what comes after it.
        return [chunk.count(b"\n\n") for chunk in chunks if b"\n\n" in chunk]

    assert len(direct) > 5
    assert events_in(through) == events_in(direct)
    assert b"".join(through).count(b"delta") == b"".join(direct).count(b"delta")


EVENTS = [b'data: {"choices":[{"delta":{"content":"%d"}}]}\n\n' % number for number in range(3)] + [b"data: [DONE]\n\n"]


def chunked(
    *chunks: bytes, end: bytes = b"0\r\n\r\n", status: int = 200, content_type: str = "text/event-stream"
) -> bytes:
    head = f"HTTP/1.1 {status} OK\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head.encode() + b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + end


@pytest.mark.parametrize(
    "chunks",
    [
        EVENTS,
        [b"".join(EVENTS)],
        [b'data: {"error":{"message":"out of memory"}}\n\n'],
        [*EVENTS[:2], b'data: {"error":{"message":"out of memory"}}\n\n', EVENTS[3]],
        [EVENTS[0] + b'data: {"er', b'ror":{"message":"out of memory"}}\n\n' + EVENTS[1]],
        [*EVENTS[:1], b'data: {"error":{"message":"does not match the expected peg-native format"'],
    ],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_other_streams_arrive_to_the_byte(canned_stream: "CannedStream", chunks: list[bytes], reverse: bool) -> None:
    canned_stream.answer = chunked(*chunks)
    with canned_stream.proxy.client(reverse=reverse) as client:
        origin = "" if reverse else canned_stream.upstream.origin
        response = client.post(f"{origin}{CHAT_PATH}", json=chat_request("x", stream=True))
    assert response.content == b"".join(chunks)


class CannedStream:
    """A proxy in front of an upstream whose answer a test sets."""

    def __init__(self, folder: Any) -> None:
        self.answer = b""
        self.upstream = CannedUpstream(lambda _: self.answer)
        self.proxy = Proxy(self.upstream.origin, folder)


@pytest.fixture(scope="module")
def canned_stream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CannedStream]:
    canned = CannedStream(tmp_path_factory.mktemp("stream"))
    with canned.upstream, canned.proxy:
        yield canned


SENT = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null}}],"id":"x"}\n\n'
FAILURE = (
    b'data: {"error":{"code":500,"message":"The model produced output that does not match the expected x format"}}\n\n'
)


def test_a_replay_that_fails_lets_the_original_end_through(start_proxy: Callable[..., Proxy]) -> None:
    with CannedUpstream(in_turn(chunked(SENT, FAILURE), http_response(200, b"nonsense"))) as upstream:
        proxy = start_proxy(upstream.origin)
        with proxy.client() as client:
            response = client.post(CHAT_PATH, json=chat_request("x", stream=True))
    assert response.content == SENT + b": x-pegmend: failed; reason=the body is not JSON\n\n" + FAILURE


def test_the_name_of_an_error_event_does_not_go_out_without_its_data(start_proxy: Callable[..., Proxy]) -> None:
    choice = {"finish_reason": "stop", "message": {"content": SEPARATED["newline"]}}
    replay = http_response(200, json.dumps({"id": "x", "choices": [choice]}).encode())
    named = b"event: error\n" + FAILURE
    with CannedUpstream(
        in_turn(chunked(SENT, named), replay, chunked(SENT, named), http_response(200, b""))
    ) as upstream:
        proxy = start_proxy(upstream.origin)
        client = openai.OpenAI(
            base_url=f"{proxy.reverse}/v1", api_key="x", max_retries=0, http_client=httpx.Client(trust_env=False)
        )
        with client, client.chat.completions.create(**chat_request("x"), stream=True) as events:
            names = [
                call.function.name
                for event in events
                for call in event.choices[0].delta.tool_calls or []
                if call.function is not None and call.function.name
            ]
        with proxy.client() as plain:
            failed = plain.post(CHAT_PATH, json=chat_request("x", stream=True))
    assert names == ["write_file", "write_file"]
    assert failed.content == SENT + b": x-pegmend: failed; reason=the body is not JSON\n\n" + named


def test_a_stream_with_a_length_does_not_grow_beyond_it(start_proxy: Callable[..., Proxy]) -> None:
    whole = http_response(200, SENT + FAILURE, "Content-Type: text/event-stream")
    choice = {"finish_reason": "stop", "message": {"content": SEPARATED["newline"]}}
    replay = http_response(200, json.dumps({"id": "x", "choices": [choice]}).encode())
    healthy = http_response(200, SENT, "Content-Type: text/event-stream")
    with CannedUpstream(in_turn(whole, replay, healthy)) as upstream:
        proxy = start_proxy(upstream.origin)
        with proxy.client() as client:
            response = client.post(CHAT_PATH, json=chat_request("x", stream=True))
            assert client.post(CHAT_PATH, json=chat_request("x", stream=True)).content == SENT
    assert response.content.startswith(SENT + b": x-pegmend: repaired")
    assert response.content.endswith(b"data: [DONE]\n\n")
    assert int(response.headers["content-length"]) == len(response.content)
    assert response.content.count(b"write_file") == 2


def test_arguments_that_were_begun_with_a_raw_line_end(start_proxy: Callable[..., Proxy]) -> None:
    delta = {"index": 0, "id": "1", "type": "function", "function": {"name": "get_time", "arguments": '{"a": "x\ny'}}
    call = (
        b"data: %b\n\n" % json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [delta]}}], "id": "x"}).encode()
    )
    choice = {"message": {"content": '{"name": "get_time", "parameters": {"a": "x\ny\nz"}}; '}}
    replay = http_response(200, json.dumps({"choices": [choice]}).encode())
    with CannedUpstream(in_turn(chunked(SENT, call, FAILURE), replay)) as upstream:
        proxy = start_proxy(upstream.origin)
        with proxy.client() as client:
            text = client.post(CHAT_PATH, json=chat_request("x", stream=True)).text
    assert json.loads(text.split("\n\n")[3][6:])["choices"][0]["delta"]["tool_calls"][0]["function"] == {
        "arguments": '\\nz"}'
    }


def test_another_second_run_is_not_mixed_in(start_proxy: Callable[..., Proxy]) -> None:
    call = b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"1","type":"function","function":'
    call += b'{"name":"get_time","arguments":"{"}}]}}],"id":"x"}\n\n'
    replay = http_response(200, json.dumps({"choices": [{"message": {"content": SEPARATED["newline"]}}]}).encode())
    with CannedUpstream(in_turn(chunked(SENT, call, FAILURE), replay)) as upstream:
        proxy = start_proxy(upstream.origin)
        with proxy.client() as client:
            response = client.post(CHAT_PATH, json=chat_request("x", stream=True))
    assert response.content.startswith(SENT + call)
    assert json.loads(response.text.split("\n\n")[-2][6:])["error"]["code"] == "tool_calls_incomplete"


def test_comments_keep_the_client_while_the_engine_runs_again(start_proxy: Callable[..., Proxy]) -> None:
    with CannedUpstream(in_turn(chunked(SENT, FAILURE), HANG)) as upstream:
        proxy = start_proxy(upstream.origin, options=["pegmend_replay_timeout_ms=6000"])
        with proxy.client() as client:
            response = client.post(CHAT_PATH, json=chat_request("x", stream=True))
    assert response.content.startswith(SENT + b": pegmend is recovering this turn\n\n: x-pegmend: failed")
    assert response.content.endswith(FAILURE)


def _read_into(pieces: list[bytes], response: httpx.Response) -> None:
    for piece in response.iter_raw():
        pieces.append(piece)  # noqa: PERF402  (extend() would keep nothing of an iterator that raises)


@pytest.mark.parametrize(("end", "beginning"), [(b"", b""), (b"5\r\nda", b"da")])
def test_an_upstream_that_breaks_off(start_proxy: Callable[..., Proxy], end: bytes, beginning: bytes) -> None:
    answer = chunked(SENT, FAILURE, end=end).replace(b"OK\r\n", b"OK\r\nConnection: close\r\n")
    with CannedUpstream(in_turn(answer)) as upstream:
        proxy = start_proxy(upstream.origin)
        received: list[bytes] = []
        with (
            proxy.client() as client,
            pytest.raises(httpx.RemoteProtocolError),
            client.stream("POST", CHAT_PATH, json=chat_request("x", stream=True)) as response,
        ):
            _read_into(received, response)
    assert b"".join(received) == SENT + FAILURE + beginning


def test_a_client_that_goes_away_ends_the_second_run(start_proxy: Callable[..., Proxy]) -> None:
    with CannedUpstream(in_turn(chunked(SENT, FAILURE), HANG)) as upstream:
        proxy = start_proxy(upstream.origin)
        with (
            proxy.client() as client,
            client.stream("POST", CHAT_PATH, json=chat_request("x", stream=True)) as response,
        ):
            assert next(response.iter_raw()) == SENT
            wait_until(lambda: len(upstream.requests) >= 2)
            assert not upstream.hung_up.is_set()
        assert upstream.hung_up.wait(5)


def test_a_client_that_resets_its_stream_ends_the_second_run(start_proxy: Callable[..., Proxy]) -> None:
    body = json.dumps(chat_request("x", stream=True)).encode()
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with CannedUpstream(in_turn(chunked(SENT, FAILURE), HANG)) as upstream:
        proxy = start_proxy(upstream.origin)
        with (
            socket.create_connection(("127.0.0.1", proxy.reverse_port)) as plain,
            context.wrap_socket(plain, server_hostname="x") as connection,
        ):
            http2 = H2Connection(H2Configuration(client_side=True))
            http2.initiate_connection()
            head = {":method": "POST", ":authority": "x", ":scheme": "https", ":path": CHAT_PATH}
            http2.send_headers(1, list(head.items()))
            http2.send_data(1, body, end_stream=True)
            connection.sendall(http2.data_to_send())
            wait_until(lambda: len(upstream.requests) >= 2)
            http2.receive_data(connection.recv(65536))
            http2.reset_stream(1)
            connection.sendall(http2.data_to_send())
            assert upstream.hung_up.wait(2 * PING_SECONDS)


def test_streams_one_after_the_other_on_one_connection(engine: Engine, proxy: Proxy) -> None:
    with proxy.client() as client:
        for script, count in [("newline", 2), ("single", 1), ("semicolon", 2), ("fifty", 50), ("single", 1)]:
            assert len(stream(client, script).calls) == count
            assert len(client._transport._pool.connections) == 1  # type: ignore[attr-defined]


FAILURE_BODY = b'{"error":{"message":"does not match the expected peg-native format"}}'


@pytest.mark.parametrize(
    "failure",
    [http_response(500, FAILURE_BODY), chunked(FAILURE_BODY, status=500, content_type="application/json")],
    ids=["with length", "chunked"],
)
def test_a_stream_that_failed_before_it_began_is_answered_as_a_stream(
    start_proxy: Callable[..., Proxy], failure: bytes
) -> None:
    completion = {"id": "c", "model": "m", "created": 1, "system_fingerprint": "f"}
    choice = {"finish_reason": "stop", "message": {"content": SEPARATED["newline"]}}
    replay = http_response(200, json.dumps({**completion, "choices": [choice]}).encode())
    with CannedUpstream(in_turn(failure, replay)) as upstream:
        proxy = start_proxy(upstream.origin)
        with proxy.client() as client:
            response = client.post(CHAT_PATH, json=chat_request("x", stream=True))
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream"
    assert response.headers["x-pegmend"] == "repaired; evidence=replay; calls=2"
    streamed = accumulate(response.text)
    assert streamed.calls == BOTH_FILES
    assert streamed.heads == {("c", "m", "f")}
