"""OpenAI chat completion streams: what was sent so far, and the events that have to follow."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from pegmend.continuation import Rest, SentCall, SentChoice
from pegmend.dialects.openai_chat import CHUNK_HEAD, call_ids, error_object, finish_reason
from pegmend.errors import TurnError
from pegmend.sse import DONE, data_of_events, json_event


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
        head: dict[str, Any] = {}
        choices: dict[int, _Choice] = {}
        try:
            for data in data_of_events(stream):
                chunk = orjson.loads(data)
                head = head or {name: chunk[name] for name in CHUNK_HEAD if name in chunk}
                for choice in chunk["choices"]:
                    choices.setdefault(choice["index"], _Choice()).take(choice)
            return cls(head, {index: choice.sent() for index, choice in choices.items()})
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise NotAStream(f"the stream holds what is no chat completion chunk ({error})") from error

    def choice(self, index: int) -> SentChoice:
        """Return what was sent of one choice."""
        return self.choices.setdefault(index, SentChoice())


class _Choice:
    """The deltas of one choice. They are joined once, for adding to a string each time takes quadratic time."""

    def __init__(self) -> None:
        self._has_role = False
        self._is_finished = False
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[_Call] = []

    def take(self, choice: dict[str, Any]) -> None:
        delta = choice["delta"]
        self._has_role |= "role" in delta
        self._is_finished |= bool(choice.get("finish_reason"))
        self._content.append(delta.get("content") or "")
        self._reasoning.append(delta.get("reasoning_content") or "")
        for part in delta.get("tool_calls") or ():
            if part["index"] == len(self._calls):
                self._calls.append(_Call())
            self._calls[part["index"]].take(part)

    def sent(self) -> SentChoice:
        calls = [call.sent() for call in self._calls]
        content, reasoning = "".join(self._content), "".join(self._reasoning)
        return SentChoice(self._has_role, content, reasoning, calls, self._is_finished)


class _Call:
    """The deltas of one call."""

    def __init__(self) -> None:
        self._id = ""
        self._name: list[str] = []
        self._arguments: list[str] = []

    def take(self, part: dict[str, Any]) -> None:
        self._id = part.get("id") or self._id
        self._name.append(part["function"].get("name") or "")
        self._arguments.append(part["function"].get("arguments") or "")

    def sent(self) -> SentCall:
        return SentCall("".join(self._name), "".join(self._arguments), self._id)


def rest_events(sent: SentStream, rests: Sequence[Rest], usage: object = None) -> bytes:
    """Return the events that complete a stream: for each choice its rest and end, then the usage if there is one.

    A choice that is finished gets nothing more.
    """
    events = []
    for index, rest in enumerate(rests):
        choice = sent.choice(index)
        if choice.is_finished:
            continue
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
