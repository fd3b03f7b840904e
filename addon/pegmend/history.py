"""Repairs a chat history that the engine or its template would refuse although its meaning is clear.

Measured on llama-server b10434: arguments that are missing, empty or no JSON are refused with a 500; arguments that are
JSON inside JSON are rendered with both layers of quotes. Templates of the Llama 3 family refuse two calls in one
message, Mistral's any id of a call that is not nine letters and digits. What the engine takes is left alone, as objects
in place of JSON texts are.
"""

import hashlib
import re
from collections import deque
from collections.abc import Sequence
from typing import Any

import orjson

from pegmend.utf8 import read_body

Message = dict[str, Any]

_SHORT_ID_LENGTH = 9
_SHORT_ID = re.compile(rf"[A-Za-z0-9]{{{_SHORT_ID_LENGTH}}}")


def has_several_calls(messages: object) -> bool:
    """Whether any message of a history holds more than one call."""
    return isinstance(messages, list) and any(len(_calls_of(message)) > 1 for message in messages)


def with_sound_arguments(messages: object) -> tuple[list[Any], list[str]] | None:
    """Return a history whose arguments are JSON objects, and what was done; None where there is nothing to do.

    Only what is certain: missing or empty arguments are `{}`, JSON inside JSON loses its outer layer, and a JSON object
    with ill-formed characters in it is made well-formed. Anything else is left for the engine to judge.
    """
    if not isinstance(messages, list):
        return None
    repaired: list[Any] = []
    done: list[str] = []
    for place, message in enumerate(messages):
        calls = []
        for number, call in enumerate(_calls_of(message)):
            sound, reason = _sound_call(call)
            calls.append(sound)
            if reason:
                done.append(f"messages[{place}].tool_calls[{number}]: {reason}")
        repaired.append({**message, "tool_calls": calls} if calls else message)
    return (repaired, done) if done else None


def _sound_call(call: Any) -> tuple[Any, str]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return call, ""
    arguments, reason = _sound_arguments(function)
    return ({**call, "function": {**function, "arguments": arguments}}, reason) if reason else (call, "")


def _sound_arguments(function: dict[str, Any]) -> tuple[Any, str]:
    """Return arguments that the engine takes and why they differ, "" where they do not."""
    if "arguments" not in function:
        return "{}", "missing arguments"
    written = function["arguments"]
    if not isinstance(written, str):
        return written, ""
    if not written.strip():
        return "{}", "empty arguments"
    body = read_body(written.encode())
    if isinstance(body.value, str) and isinstance(_json_in(body.value), dict):
        return body.value, "arguments encoded twice"
    if body.is_changed and isinstance(body.value, dict):
        return body.raw.decode(), f"arguments with {body.changes[0].reason}"
    return written, ""


def _json_in(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def unfolded(messages: Sequence[Any]) -> list[Any]:
    """Return a history in which every message holds one call at the most, each followed by its result.

    Results are matched by their call's id, in any order; ids may come again in other turns. What stands beside the
    calls (content, reasoning) stays with the first of them. A call without a result stands without one, results that
    belong to no call follow the last one.
    """
    history: list[Any] = []
    place = 0
    while place < len(messages):
        message = messages[place]
        place += 1
        calls = _calls_of(message)
        if len(calls) < 2:
            history.append(message)
            continue
        results = []
        while place < len(messages) and _is_result(messages[place]):
            results.append(messages[place])
            place += 1
        history += _one_by_one(message, calls, results)
    return history


def _one_by_one(message: Message, calls: Sequence[Any], results: Sequence[Message]) -> list[Message]:
    waiting: dict[Any, deque[int]] = {}
    for place, result in enumerate(results):
        waiting.setdefault(result.get("tool_call_id"), deque()).append(place)
    taken: set[int] = set()
    history: list[Message] = []
    for number, call in enumerate(calls):
        history.append({**message, "tool_calls": [call]} if number == 0 else _bare(message, call))
        # By its id; a result that names no call belongs to the first call that has none of its own.
        own = waiting.get(call.get("id") if isinstance(call, dict) else None) or waiting.get(None)
        if own:
            taken.add(own[0])
            history.append(results[own.popleft()])
    return history + [result for place, result in enumerate(results) if place not in taken]


def _bare(message: Message, call: Any) -> Message:
    return {"role": message.get("role"), "content": None, "tool_calls": [call]}


def has_long_ids(messages: object) -> bool:
    """Whether any call of a history has an id that is not nine letters and digits."""
    return isinstance(messages, list) and any(
        isinstance(call, dict) and "id" in call and not _SHORT_ID.fullmatch(str(call["id"]))
        for message in messages
        for call in _calls_of(message)
    )


def with_short_ids(messages: Sequence[Any]) -> list[Any]:
    """Return a history in which all ids of calls are nine letters and digits; equal ids stay equal."""
    return [_with_short_ids(message) if isinstance(message, dict) else message for message in messages]


def _with_short_ids(message: Message) -> Message:
    shortened = dict(message)
    if calls := _calls_of(message):
        shortened["tool_calls"] = [
            {**call, "id": _short_id(call["id"])} if isinstance(call, dict) and "id" in call else call for call in calls
        ]
    if "tool_call_id" in message:
        shortened["tool_call_id"] = _short_id(message["tool_call_id"])
    return shortened


def _short_id(long: object) -> str:
    name = str(long)
    return name if _SHORT_ID.fullmatch(name) else hashlib.sha256(name.encode()).hexdigest()[:_SHORT_ID_LENGTH]


def _calls_of(message: Any) -> list[Any]:
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    return calls if isinstance(calls, list) else []


def _is_result(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") in ("tool", "ipython", "function")
