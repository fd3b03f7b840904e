"""Which evidence decides about a failed turn, and what the client gets where none proves it."""

import asyncio
import json
from typing import Any

import pytest

from pegmend.continuation import SentCall, SentChoice
from pegmend.dialects.openai_chat import ChatRequest
from pegmend.dialects.openai_stream import SentStream
from pegmend.enginelog import FailureEntry
from pegmend.repair import FailedTurn, Repair, recover
from tests.engine.scripts import TOOLS, call
from tests.engine.streams import accumulate

A, B = call("read_file", path="a"), call("get_time")
SENT_A = SentCall("read_file", '{"path": "a"}', "1")
HEAD = {"id": "c", "created": 1, "model": "m", "system_fingerprint": "f", "object": "chat.completion.chunk"}
USAGE = {"stream_options": {"include_usage": True}}


def recovered(
    remainder: str,
    *calls: SentCall,
    stream: bool = True,
    full: str | None = None,
    replay: str | None = None,
    deliver: bool = False,
    **members: Any,
) -> Repair:
    """Return the repair of a turn that failed behind `calls`; `replay` is the text of a second run that was cut."""
    request = ChatRequest({"model": "m", "messages": [], "tools": TOOLS, "stream": stream, **members})
    sent = SentStream(HEAD, {0: SentChoice(True, calls=list(calls))}) if calls else SentStream()
    entry = FailureEntry("peg-native", remainder, full)
    failed = FailedTurn(request, sent if stream else None, bool(calls), entry, deliver)

    async def run_again() -> bytes:
        choice = {"index": 0, "finish_reason": "length", "message": {"content": replay}}
        return json.dumps({**HEAD, "choices": [choice], "usage": {"completion_tokens": 9}}).encode()

    return asyncio.run(recover(failed, run_again if replay is not None else None))


@pytest.mark.parametrize(
    ("evidence", "words", "stream", "members"),
    [
        ("full", "", True, {}),
        ("replay", "", False, {}),  # a whole completion holds token counts
        ("replay", "", True, USAGE),
        ("replay", "", True, {"max_tokens": 50}),
        ("replay", " And th", True, {}),  # the engine may have cut the words by a limit of its own
    ],
)
def test_a_whole_text_decides_unless_a_second_run_knows_more(
    evidence: str, words: str, stream: bool, members: dict[str, Any]
) -> None:
    whole = f"{A}; {B}{words}"
    repair = recovered(f"; {B}{words}", full=whole, replay=whole, stream=stream, **members)
    assert (repair.outcome, repair.evidence, repair.calls) == ("repaired", evidence, ("read_file", "get_time"))
    assert (b'"finish_reason":"length"' in repair.body) is (evidence == "replay")
    alone = recovered(f"; {B}{words}", full=whole, stream=stream, **members)
    assert (alone.outcome, alone.evidence, alone.calls) == ("repaired", "full", ("read_file", "get_time"))


@pytest.mark.parametrize(
    ("evidence", "words", "members"),
    [
        ("stream+log", "", {}),
        ("replay", "", USAGE),
        ("replay", "", {"max_tokens": 50}),
        ("replay", " And th", {}),
    ],
)
def test_a_stream_and_the_log_decide_unless_a_second_run_knows_more(
    evidence: str, words: str, members: dict[str, Any]
) -> None:
    repair = recovered(f"; {B}{words}", SENT_A, replay=f"{A}; {B}{words}", **members)
    assert (repair.outcome, repair.evidence, repair.calls) == ("repaired", evidence, ("read_file", "get_time"))
    alone = recovered(f"; {B}{words}", SENT_A, **members)
    assert (alone.outcome, alone.evidence, alone.calls) == ("repaired", "stream+log", ("read_file", "get_time"))


@pytest.mark.parametrize(
    ("calls", "members"),
    [
        ([SentCall("read_file")], {}),
        ([SentCall("read_file", "{")], {}),
        ([SENT_A], {}),
        ([SENT_A, SentCall("get_time", '{"x": 1}')], {"n": 2}),
    ],
)
def test_what_a_stream_has_begun_is_not_delivered_again(calls: list[SentCall], members: dict[str, Any]) -> None:
    repair = recovered(f"{A}; {B}", *calls, deliver=True, **members)
    assert (repair.outcome, repair.code) == ("error", "tool_calls_incomplete")


def test_a_stream_in_which_nothing_was_sent_gets_a_head() -> None:
    repair = recovered(f"{A}; {B}", deliver=True)
    streamed = accumulate(repair.body.decode())
    ((one, model, _),) = streamed.heads
    assert (repair.outcome, repair.calls, model) == ("incomplete", ("read_file", "get_time"), "m")
    assert one.startswith("chatcmpl-")
    again = accumulate(recovered(f"{A}; {B}", deliver=True).body.decode())
    assert not set(streamed.ids) & set(again.ids)


def test_a_choice_that_is_finished_gets_nothing_more() -> None:
    choices = {0: SentChoice(True, "Done.", is_finished=True), 1: SentChoice(True, calls=[SENT_A])}
    request = ChatRequest({"model": "m", "messages": [], "tools": TOOLS, "stream": True, "n": 2})

    async def run_again() -> bytes:
        texts = ["Done.", f"{A}; {B}"]
        return json.dumps({**HEAD, "choices": [{"message": {"content": text}} for text in texts]}).encode()

    repair = asyncio.run(recover(FailedTurn(request, SentStream(HEAD, choices), is_streaming=True), run_again))
    assert repair.calls == ("read_file", "get_time")
    added = [json.loads(event[6:])["choices"][0] for event in repair.body.decode().split("\n\n")[:-2]]
    assert [(choice["index"], choice["finish_reason"]) for choice in added] == [(1, None), (1, "tool_calls")]
