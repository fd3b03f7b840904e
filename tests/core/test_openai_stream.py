"""What was sent of a stream, and the ids of the calls in it."""

import json
import time
from typing import Any

import pytest

from pegmend.continuation import SentCall, SentChoice
from pegmend.dialects.openai_chat import call_ids
from pegmend.dialects.openai_stream import NotAStream, SentStream
from pegmend.turn import ToolCall

HEAD = {"created": 1, "id": "c", "model": "m", "system_fingerprint": "f", "object": "chat.completion.chunk"}


def chunk(delta: dict[str, Any], finish_reason: str | None = None, *, index: int = 0, **members: Any) -> bytes:
    choice = {"index": index, "delta": delta, "finish_reason": finish_reason}
    return b"data: %b\n\n" % json.dumps({"choices": [choice], **HEAD, **members}).encode()


def call(index: int, **members: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, **members}]}


def test_deltas_add_up() -> None:
    sent = SentStream.parse(
        chunk({"role": "assistant", "content": None}, prompt_progress={"total": 9}, timings={})
        + chunk({"reasoning_content": "h"})
        + chunk({"reasoning_content": "m"})
        + chunk({"content": "Hi"})
        + chunk(call(0, id="x", type="function", function={"name": "read", "arguments": "{"}))
        + chunk(call(0, function={"arguments": "}"}))
        + chunk(call(1, id="y", type="function", function={"name": "time"}))
        + chunk({"content": "Bye"}, index=1)
        + chunk({}, "stop", index=1)
    )
    assert sent.head == HEAD
    assert sent.choices == {
        0: SentChoice(True, "Hi", "hm", [SentCall("read", "{}", "x"), SentCall("time", "", "y")]),
        1: SentChoice(content="Bye", is_finished=True),
    }


@pytest.mark.parametrize("event", [b"data: 1\n\n", b"data: {}\n\n", chunk(call(1, function={})), chunk(call(0))])
def test_what_is_no_chunk_is_refused(event: bytes) -> None:
    with pytest.raises(NotAStream):
        SentStream.parse(event)


def test_many_deltas_take_linear_time() -> None:
    arguments = chunk(call(0, function={"arguments": "x" * 40}))

    def seconds(count: int) -> float:
        started = time.perf_counter()
        assert len(SentStream.parse(arguments * count).choice(0).calls[0].arguments) == 40 * count
        return time.perf_counter() - started

    assert seconds(80_000) < 20 * seconds(10_000)


def test_ids_of_many_calls_take_linear_time_and_stand_once() -> None:
    calls = [ToolCall("time", "{}", f"id{number}") for number in range(40_000)] + [ToolCall("time", "{}", "id1")]
    started = time.perf_counter()
    ids = call_ids("c", 0, calls, ["id7"])
    assert time.perf_counter() - started < 5
    assert len({*ids, "id7"}) == len(calls) + 1
    assert ids[:7] == [f"id{number}" for number in range(7)]
