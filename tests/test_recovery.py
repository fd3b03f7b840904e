"""The repair of failed turns, on the real engine through a real mitmdump."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.conftest import CHAT_PATH, chat_request
from tests.engine import Engine
from tests.engine.canned import CannedUpstream, http_response
from tests.engine.proxy import ROOT, Proxy
from tests.engine.scripts import LOG_ENTRY, LONG_CONTENT, SCRIPTS, SEPARATED, SUMMARY

Call = tuple[str, dict[str, Any]]
BOTH_FILES: list[Call] = [("write_file", SUMMARY), ("write_file", LOG_ENTRY)]


@pytest.fixture(scope="module")
def canned_failure() -> Iterator[CannedUpstream]:
    """An upstream that fails a request with tools and answers its raw replay."""
    failure = http_response(500, b'{"error":{"message":"does not match the expected peg-native format"}}')
    raw_text = json.dumps({"name": "get_time", "parameters": {}})
    replay = http_response(200, json.dumps({"id": "x", "choices": [{"message": {"content": raw_text}}]}).encode())
    with CannedUpstream(lambda request: replay if b"reasoning_format" in request else failure) as running:
        yield running


def calls_of(message: dict[str, Any]) -> list[Call]:
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message["tool_calls"]]


TURNS: list[tuple[str, list[Call], str | None]] = [
    *((script, BOTH_FILES, None) for script in SEPARATED),
    ("prose-around", BOTH_FILES, "I will write both.\nThen the log:\nThat is all."),
    ("text-after", BOTH_FILES[:1], "I have created the first file."),
    *(
        (script, BOTH_FILES, None)
        for script in (
            "arguments-key",
            "arguments-first",
            "typed",
            "wrapped",
            "string-arguments",
            "fences",
            "list",
            "pretty",
        )
    ),
    ("no-arguments", [("get_time", {}), ("get_time", {})], None),
    ("fifty", [("read_file", {"path": f"in/{number}.txt"}) for number in range(50)], None),
    ("long", [("write_file", {"path": "long.txt", "content": LONG_CONTENT}), ("get_time", {})], None),
    (
        "unicode",
        [
            ("write_file", {"path": "décor/plan.txt", "content": 'Deep green; "velvet" {ok} 漢字 😀'}),
            ("read_file", {"path": "décor/plan.txt"}),
        ],
        None,
    ),
]
"""What comes back of each script: its calls and its words."""


@pytest.mark.parametrize(("script", "calls", "content"), TURNS)
def test_a_failed_turn_comes_back_as_its_calls(
    direct: httpx.Client, mended: httpx.Client, script: str, calls: list[Call], content: str | None
) -> None:
    request = chat_request(script, stream=False)
    assert direct.post(CHAT_PATH, json=request).status_code == 500
    response = mended.post(CHAT_PATH, json=request)
    assert response.status_code == 200
    assert response.headers["x-pegmend"] == f"repaired; evidence=replay; calls={len(calls)}"
    body = response.json()
    choice = body["choices"][0]
    assert body["object"] == "chat.completion"
    assert body["model"] == "scripted"
    assert body["usage"]["completion_tokens"] > 0
    assert body["system_fingerprint"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == content
    assert calls_of(choice["message"]) == calls
    ids = [call["id"] for call in choice["message"]["tool_calls"]]
    assert len(set(ids)) == len(calls)
    assert all(len(one) == 32 and one.isalnum() for one in ids)


def test_every_choice_is_read_by_itself(mended: httpx.Client) -> None:
    body = mended.post(CHAT_PATH, json=chat_request("newline", n=2)).json()
    assert [choice["index"] for choice in body["choices"]] == [0, 1]
    assert [calls_of(choice["message"]) for choice in body["choices"]] == [BOTH_FILES, BOTH_FILES]
    ids = [call["id"] for choice in body["choices"] for call in choice["message"]["tool_calls"]]
    assert len(set(ids)) == 4


def test_a_turn_that_max_tokens_cuts_has_its_complete_calls(direct: httpx.Client, mended: httpx.Client) -> None:
    whole = mended.post(CHAT_PATH, json=chat_request("newline")).json()["usage"]["completion_tokens"]
    request = chat_request("newline", max_tokens=whole - 4)
    assert direct.post(CHAT_PATH, json=request).status_code == 500
    response = mended.post(CHAT_PATH, json=request)
    choice = response.json()["choices"][0]
    assert choice["finish_reason"] == "length"
    assert calls_of(choice["message"]) == BOTH_FILES[:1]
    assert choice["message"]["content"] is None


@pytest.mark.parametrize("script", ["braces", "json-answer"])
def test_a_text_without_calls_is_a_plain_answer(direct: httpx.Client, mended: httpx.Client, script: str) -> None:
    assert direct.post(CHAT_PATH, json=chat_request(script)).status_code == 500
    response = mended.post(CHAT_PATH, json=chat_request(script))
    choice = response.json()["choices"][0]
    assert response.headers["x-pegmend"] == "repaired; evidence=replay; calls=0"
    assert choice["finish_reason"] == "stop"
    assert choice["message"] == {"role": "assistant", "content": SCRIPTS[script][0]}


@pytest.mark.parametrize(
    ("script", "code", "seen"),
    [
        ("broken", "tool_calls_unparseable", 1),
        ("cut", "tool_calls_unparseable", 1),
        ("undeclared", "tool_calls_undeclared", 1),
    ],
)
def test_what_cannot_be_proven_is_a_documented_error(mended: httpx.Client, script: str, code: str, seen: int) -> None:
    response = mended.post(CHAT_PATH, json=chat_request(script))
    error = response.json()["error"]
    assert response.status_code == 422
    assert response.headers["x-should-retry"] == "false"
    assert response.headers["x-pegmend"] == f"error; evidence=replay; calls=0; code={code}"
    assert (error["type"], error["code"]) == ("tool_call_parse_error", code)
    assert error["raw_output"] == SCRIPTS[script][0]
    assert len(error["recovered_tool_calls"]) == seen
    link = error["message"].rpartition("#")[2]
    assert f'<a id="{link}"></a>' in (ROOT / "docs" / "errors.md").read_text("utf-8")


def test_a_call_that_tool_choice_forbids_is_an_error(direct: httpx.Client, mended: httpx.Client) -> None:
    request = chat_request("newline", tool_choice={"type": "function", "function": {"name": "read_file"}})
    assert direct.post(CHAT_PATH, json=request).status_code == 500
    assert mended.post(CHAT_PATH, json=request).json()["error"]["code"] == "tool_calls_undeclared"


def test_without_the_replay_there_is_no_raw_output(start_proxy: Callable[..., Proxy]) -> None:
    with start_proxy(options=["pegmend_replay=false"]).client() as client:
        response = client.post(CHAT_PATH, json=chat_request("newline"))
    assert response.status_code == 422
    assert response.json()["error"]["code"] == "raw_output_unavailable"
    assert "pegmend_replay" in response.json()["error"]["message"]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/engines/v1/chat/completions",
        "/engines/other/v1/chat/completions?x=1",
        "/api/v1/chat/completions",
    ],
)
def test_both_ways_in_and_all_paths(canned_failure: CannedUpstream, start_proxy: Any, path: str, reverse: bool) -> None:
    proxy = start_proxy(canned_failure.origin)
    with proxy.client(reverse=reverse) as client:
        response = client.post(path if reverse else canned_failure.origin + path, json=chat_request("x"))
    assert response.headers["x-pegmend"] == "repaired; evidence=replay; calls=1"


def test_the_repair_is_seen_in_the_log(engine: Engine, proxy: Proxy, mended: httpx.Client) -> None:
    before = len(proxy.log_text())
    mended.post(f"{CHAT_PATH}?key=secret", json=chat_request("newline"))
    (line,) = [line for line in proxy.log_text()[before:].splitlines() if "pegmend" in line]
    assert "secret" not in line
    assert "HTTP Request:" not in proxy.log_text()
    assert re.search(r"repaired; evidence=replay; calls=2 \(write_file, write_file\) in \d+\.\d\d s", line)
