"""The repair of failed turns, on the real engine through a real mitmdump."""

import json
from typing import Any

import httpx
import pytest

from tests.conftest import CHAT_PATH, chat_request
from tests.engine.scripts import LOG_ENTRY, LONG_CONTENT, SEPARATED, SUMMARY

Call = tuple[str, dict[str, Any]]
BOTH_FILES: list[Call] = [("write_file", SUMMARY), ("write_file", LOG_ENTRY)]


def calls_of(message: dict[str, Any]) -> list[Call]:
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message["tool_calls"]]


@pytest.mark.parametrize(
    ("script", "calls", "content"),
    [
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
    ],
)
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
