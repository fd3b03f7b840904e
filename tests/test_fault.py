"""The fault itself, seen on the engine directly: what all of this is for."""

import json

import httpx
import pytest

from tests.conftest import CHAT_PATH, chat_request
from tests.engine import Engine
from tests.engine.scripts import LOG_ENTRY, SEPARATED, SUMMARY
from tests.waiting import wait_until

SENTENCE = "The model produced output that does not match the expected peg-native format"


@pytest.mark.parametrize("script", SEPARATED)
def test_two_calls_in_one_turn_are_refused_and_the_log_lacks_the_first(
    engine: Engine, direct: httpx.Client, script: str
) -> None:
    logged_before = len(engine.log_text())
    response = direct.post(CHAT_PATH, json=chat_request(script, stream=False))
    assert response.status_code == 500
    assert response.json() == {"error": {"code": 500, "message": SENTENCE, "type": "server_error"}}
    entry = _logged_remainder(engine, logged_before)
    assert LOG_ENTRY["path"] in entry
    assert SUMMARY["path"] not in entry


def _logged_remainder(engine: Engine, start: int) -> str:
    """Return what the engine logs of the failed turn; its log is written by a thread of its own, behind the answer."""

    def remainder() -> str:
        return engine.log_text()[start:].partition("unparsed peg-native output: ")[2]

    wait_until(lambda: LOG_ENTRY["path"] in remainder())
    return remainder()


def test_a_single_call_works(direct: httpx.Client) -> None:
    response = direct.post(CHAT_PATH, json=chat_request("single", stream=False))
    assert response.status_code == 200
    choice = response.json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    (call,) = choice["message"]["tool_calls"]
    assert call["function"]["name"] == "write_file"
    assert json.loads(call["function"]["arguments"]) == SUMMARY
