"""Reads a chat completion stream as a client does: deltas are joined into a message."""

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Streamed:
    """What a client has at the end of a stream: a message for each choice, and what else came."""

    messages: dict[int, dict[str, Any]] = field(default_factory=dict)
    finish_reasons: dict[int, str] = field(default_factory=dict)
    errors: list[dict[str, Any]] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    pings: int = 0
    heads: set[tuple[Any, ...]] = field(default_factory=set)
    usage: dict[str, Any] | None = None
    is_done: bool = False

    @property
    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        """The calls of the first choice."""
        calls = self.messages[0].get("tool_calls", [])
        return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]

    @property
    def ids(self) -> list[str]:
        """The ids of the calls of all choices."""
        return [call["id"] for message in self.messages.values() for call in message.get("tool_calls", [])]


def accumulate(text: str) -> Streamed:
    """Return what a stream amounts to."""
    streamed = Streamed()
    for event in text.split("\n\n"):
        if event.startswith(": x-pegmend"):
            streamed.comments.append(event[1:].strip())
        elif event.startswith(":"):
            streamed.pings += 1
        elif event == "data: [DONE]":
            streamed.is_done = True
        elif event:
            assert not streamed.is_done
            assert event.startswith("data: ")
            _take(streamed, json.loads(event[6:]))
    return streamed


def _take(streamed: Streamed, chunk: dict[str, Any]) -> None:
    if "error" in chunk:
        streamed.errors.append(chunk["error"])
        return
    assert chunk["object"] == "chat.completion.chunk"
    streamed.heads.add((chunk["id"], chunk["model"], chunk["system_fingerprint"]))
    streamed.usage = chunk.get("usage") or streamed.usage
    for choice in chunk["choices"]:
        message = streamed.messages.setdefault(choice["index"], {"content": ""})
        assert choice["index"] not in streamed.finish_reasons
        if choice["finish_reason"]:
            streamed.finish_reasons[choice["index"]] = choice["finish_reason"]
        delta = choice["delta"]
        message["role"] = delta.get("role", message.get("role"))
        message["content"] += delta.get("content") or ""
        if thought := delta.get("reasoning_content"):
            message["reasoning_content"] = message.get("reasoning_content", "") + thought
        for part in delta.get("tool_calls", []):
            calls = message.setdefault("tool_calls", [])
            if part["index"] == len(calls):
                calls.append({"id": part["id"], "type": part["type"], "function": {"name": "", "arguments": ""}})
            call = calls[part["index"]]["function"]
            call["name"] += part["function"].get("name", "")
            call["arguments"] += part["function"].get("arguments", "")
