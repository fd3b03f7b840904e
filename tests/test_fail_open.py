"""When the repair itself fails, the client sees what the engine said."""

import json
import socket
from collections.abc import Callable

import pytest

from tests.conftest import CHAT_PATH, chat_request
from tests.engine.canned import HANG, CannedUpstream, http_response, in_turn
from tests.engine.proxy import Proxy
from tests.waiting import wait_until

FAILURE_BODY = b'{"error":{"code":500,"message":"The model produced output that does not match the expected x format"}}'
FAILURE = http_response(500, FAILURE_BODY, "Content-Type: application/json; charset=utf-8")


@pytest.mark.parametrize(
    ("replay", "reason"),
    [
        (FAILURE, "the engine answered with status 500: "),
        (http_response(200, b"nonsense"), "the body is not JSON"),
        (http_response(200, b"[]"), "the body has no choices"),
        (http_response(200, b'{"choices":[{"message":{"content":null}}]}'), "a choice has no text"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nab", "RemoteProtocolError"),
        (b"no HTTP at all\r\n\r\n", "RemoteProtocolError"),
        (http_response(500, b"bad \x01\x00 \x1b[1m thing\x7f \xc3\xa9"), "status 500: bad ?? ?[1m thing? ?"),
        (HANG, "no answer within 0.5 s"),
    ],
)
def test_the_client_gets_the_original(start_proxy: Callable[..., Proxy], replay: bytes, reason: str) -> None:
    with CannedUpstream(in_turn(FAILURE, replay)) as upstream:
        proxy = start_proxy(upstream.origin, options=["pegmend_replay_timeout_ms=500"])
        with proxy.client() as client:
            response = client.post(CHAT_PATH, json=chat_request("x"))
    assert response.status_code == 500
    assert response.content == FAILURE_BODY
    assert response.headers["x-odd-case"] == "two  spaces"
    assert reason in response.headers["x-pegmend"]
    assert "is not repaired" in proxy.log_text()
    assert sum(CHAT_PATH.encode() in request for request in upstream.requests) == 2


def test_the_replay_is_cancelled_when_the_client_goes_away(start_proxy: Callable[..., Proxy]) -> None:
    with CannedUpstream(in_turn(FAILURE, HANG)) as upstream:
        proxy = start_proxy(upstream.origin)
        body = json.dumps(chat_request("x")).encode()
        with socket.create_connection(("127.0.0.1", proxy.reverse_port)) as connection:
            head = f"POST {CHAT_PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            wait_until(lambda: len(upstream.requests) >= 2)
            assert not upstream.hung_up.is_set()
        assert upstream.hung_up.wait(5)


def test_the_replay_obeys_no_proxy_variables(
    start_proxy: Callable[..., Proxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with start_proxy().client() as client:
        response = client.post(CHAT_PATH, json=chat_request("newline"))
    assert response.headers["x-pegmend"] == "repaired; evidence=replay; calls=2"
