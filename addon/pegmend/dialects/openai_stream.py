"""OpenAI chat completion streams: what was sent so far, and the events that have to follow."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from pegmend.continuation import Rest, SentCall, SentChoice
from pegmend.dialects.openai_chat import call_ids, error_object, finish_reason
from pegmend.errors import TurnError
from pegmend.sse import DONE, data_of_events, json_event

_NOT_IN_HEAD = frozenset({"choices", "usage", "timings"})


class NotAStream(ValueError):
    """What was sent is no chat completion stream; the message says why."""


@dataclass(slots=True)
class SentStream:
    """What the client has of a stream: `head` is what all chunks share (id, model, created and so on)."""

    head: dict[str, Any] = field(default_factory=dict)
    choices: dict[int, SentChoice] = field(default_factory=dict)

    @classmethod
    def parse(cls, stream: bytes) -> "SentStream":
        """Read the events that were sent. Raises NotAStream."""
        sent = cls()
        try:
            for data in data_of_events(stream):
                sent._take_chunk(orjson.loads(data))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise NotAStream(f"the stream holds what is no chat completion chunk ({error})") from error
        return sent

    def choice(self, index: int) -> SentChoice:
        """Return what was sent of one choice."""
        return self.choices.setdefault(index, SentChoice())

    def _take_chunk(self, chunk: dict[str, Any]) -> None:
        self.head = self.head or {name: value for name, value in chunk.items() if name not in _NOT_IN_HEAD}
        for choice in chunk["choices"]:
            _take_delta(self.choice(choice["index"]), choice["delta"])


def _take_delta(sent: SentChoice, delta: dict[str, Any]) -> None:
    sent.has_role |= "role" in delta
    sent.content += delta.get("content") or ""
    sent.reasoning += delta.get("reasoning_content") or ""
    for part in delta.get("tool_calls") or ():
        if part["index"] == len(sent.calls):
            sent.calls.append(SentCall())
        call = sent.calls[part["index"]]
        call.id = part.get("id") or call.id
        call.name += part["function"].get("name") or ""
        call.arguments += part["function"].get("arguments") or ""


def rest_events(sent: SentStream, rests: Sequence[Rest], usage: object = None) -> bytes:
    """Return the events that complete a stream: for each choice its rest and end, then the usage if there is one."""
    events = []
    for index, rest in enumerate(rests):
        choice = sent.choice(index)
        deltas = _deltas(str(sent.head.get("id")), index, choice, rest)
        events += [_chunk(sent, index, delta, None) for delta in deltas]
        events.append(_chunk(sent, index, {}, finish_reason(choice.calls or rest.calls, truncated=rest.truncated)))
    if usage is not None:
        events.append(json_event({"choices": [], **sent.head, "usage": usage}))
    return b"".join(events) + DONE


def error_event(error: TurnError) -> bytes:
    """Return the event that reports a documented error."""
    return json_event({"error": error_object(error)})


def _chunk(sent: SentStream, index: int, delta: dict[str, Any], finish_reason: str | None) -> bytes:
    choice = {"finish_reason": finish_reason, "index": index, "delta": delta}
    return json_event({"choices": [choice], **sent.head})


def _deltas(stream_id: str, choice: int, sent: SentChoice, rest: Rest) -> Iterator[dict[str, Any]]:
    if not sent.has_role:
        yield {"role": "assistant", "content": None}
    if rest.reasoning:
        yield {"reasoning_content": rest.reasoning}
    if rest.arguments:
        yield {"tool_calls": [{"index": len(sent.calls) - 1, "function": {"arguments": rest.arguments}}]}
    ids = call_ids(stream_id, choice, rest.calls, [call.id for call in sent.calls])
    for index, (one, call) in enumerate(zip(ids, rest.calls, strict=True), len(sent.calls)):
        function = {"name": call.name, "arguments": call.arguments}
        identity = {"index": index, "id": one, "type": "function"}
        yield {"tool_calls": [{**identity, "function": function}]}
    if rest.content:
        yield {"content": rest.content}
