"""What real engines answered and logged, by every evidence there can be: the right calls or the right error.

Each of the 42 cases is taken streamed and not; without log, with the log, with the log of debug verbosity; with and
without a second run.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pegmend.dialects.openai_chat import ChatRequest
from pegmend.dialects.openai_stream import SentStream
from pegmend.enginelog import EngineLog, FailureEntry
from pegmend.failure import find_failure
from pegmend.gate import FailureGate
from pegmend.repair import FailedTurn, Repair, recover
from tests.engine.streams import accumulate

TOOLS = ["write_file", "read_file", "list_directory", "create_event", "get_time"]
CASES = [
    pytest.param(case, id=f"{path.stem}-{case['id']}")
    for path in sorted((Path(__file__).parents[1] / "fixtures").glob("llama31-*.json"))
    for case in json.loads(path.read_text("utf-8"))
]
FAILED_CASES = [case for case in CASES if case.values[0]["json_status"] == 500]
EVIDENCE = ["nothing", "replay", "log", "log and replay", "debug log", "debug log and replay"]


def request_of(case: dict[str, Any], *, stream: bool) -> ChatRequest:
    tools = [{"type": "function", "function": {"name": name}} for name in TOOLS]
    return ChatRequest({"messages": [], "tools": tools, "stream": stream, "model": "m", **case["request"]})


def said(case: dict[str, Any]) -> str:
    """Return what the model really said: in one case max_tokens cut it."""
    raw: str = case["raw"]
    return raw.partition(', "parameters": {"path": "logs')[0] if case["verdict"] == "length" else raw


def entry_of(case: dict[str, Any], *, stream: bool, debug: bool) -> FailureEntry:
    log: str = case["log_sse" if stream else "log_json"]
    warning, _, rest = log.partition("\n0.")
    time = log.partition(" ")[0]
    if debug:
        warning += f"\n{time} D common_chat_peg_parse: full peg-native output triggering error:\n=== BEGIN ===\n"
        warning += f"<|start_header_id|>assistant<|end_header_id|>\n\n{said(case)}\n=== END ==="
    over = f"{time} W srv          stop: cancel task, id_task = 0"
    (entry,) = EngineLog().feed(f"{warning}\n{over}\n0.{rest}\n".encode())
    assert entry.is_certain
    return entry


def replay_of(case: dict[str, Any]) -> Callable[[], Awaitable[bytes]]:
    finish_reason = "length" if case["verdict"] == "length" else "stop"
    choice = {"index": 0, "finish_reason": finish_reason, "message": {"content": said(case)}}
    head = {"id": "chatcmpl-1", "created": 1, "model": "m", "system_fingerprint": "b1"}

    async def replay() -> bytes:
        return json.dumps({**head, "choices": [choice], "usage": {"completion_tokens": 9}}).encode()

    return replay


def recovered(case: dict[str, Any], evidence: str, *, stream: bool) -> tuple[Repair, list[Any]]:
    """Return the repair, and the calls that the client has then."""
    gate = FailureGate()
    sent = None
    if stream:
        gate(case["sse_body"].encode())
        assert gate.failure is not None
        sent = SentStream.parse(gate.content())
    else:
        assert find_failure(500, case["json_body"].encode()) is not None
    entry = entry_of(case, stream=stream, debug="debug" in evidence) if "log" in evidence else None
    failed = FailedTurn(request_of(case, stream=stream), sent, is_streaming=stream, entry=entry)
    repair = asyncio.run(recover(failed, replay_of(case) if "replay" in evidence else None))
    if repair.outcome == "error":
        return repair, []
    if stream:
        return repair, [list(call) for call in accumulate((gate.content() + repair.body).decode()).calls]
    message = json.loads(repair.body)["choices"][0]["message"]
    calls = [call["function"] for call in message["tool_calls"]]
    return repair, [[call["name"], json.loads(call["arguments"])] for call in calls]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize("case", FAILED_CASES)
def test_never_fewer_calls_and_never_others(case: dict[str, Any], evidence: str, stream: bool) -> None:
    repair, calls = recovered(case, evidence, stream=stream)
    expected = [[call["name"], call["arguments"]] for call in case["expected_calls"]]
    if case["verdict"] == "length" and "replay" in evidence:
        assert repair.outcome == "repaired"
        assert [call[1]["path"] for call in calls] == ["reports/summary.md"]
    elif case["verdict"] == "calls" and evidence not in ("nothing", "log"):
        assert repair.outcome == "repaired"
        assert calls == expected
    elif repair.outcome == "repaired":
        assert stream
        assert evidence == "log"
        assert calls == expected
    else:
        assert repair.outcome == "error"
        assert repair.code in {
            "nothing": ["raw_output_unavailable"],
            "log": ["tool_calls_incomplete", "tool_calls_undeclared", "tool_calls_unparseable"],
        }.get(evidence, ["tool_calls_undeclared", "tool_calls_unparseable"])


def test_the_log_alone_recovers_most_streams() -> None:
    repairs = [recovered(case.values[0], "log", stream=True)[0] for case in FAILED_CASES]
    by_log = [repair for repair in repairs if repair.evidence == "stream+log"]
    assert len(by_log) > len(repairs) // 3


@pytest.mark.parametrize("case", FAILED_CASES)
def test_the_log_alone_never_recovers_a_turn_that_was_not_streamed(case: dict[str, Any]) -> None:
    assert recovered(case, "log", stream=False)[0].outcome == "error"
