"""Recognises the failure: the engine refused its own model's output."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

# The sentence since about b9650, with the format's name: peg-native, peg-gemma4, peg-minimax-m3, Content-only.
_SENTENCE = re.compile(r"does not match the expected (\S+) format")
# The sentence of builds from 2026-03 on: the text from the place where the parser gave up stands in the body.
_OLD_SENTENCE = re.compile(r"Failed to parse input at pos (\d+): ", re.DOTALL)
# The grammar that a marker starts had nothing left to allow, while the token that was generated went on.
_GRAMMAR_SENTENCE = re.compile(r"Unexpected empty grammar stack after accepting piece")
UNNAMED_FORMAT = "unnamed"
"""Stands for the format in failures that do not name it."""

# llama-server answers 500; LM Studio passes the sentence on as 400, gateways wrap it in other 5xx.
_STATUSES = frozenset({400, 500, 502, 503})
_MESSAGE_KEYS = ("message", "error", "detail")
_MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Failure:
    """The engine's refusal: the name of the format that it expected, and its message."""

    format: str
    message: str


def may_be_failure(status: int) -> bool:
    """Whether a response with this status has to be looked at."""
    return status in _STATUSES


def find_failure(status: int, body: bytes) -> Failure | None:
    """Return the failure that a response reports, None for any other response.

    `body` is the decoded body. Wrappers nest and rename the engine's error (Lemonade: `error.details.response.error`,
    LiteLLM: a longer message), so that every message in the JSON counts, whatever is around it.
    """
    if not may_be_failure(status):
        return None
    for message in messages_in(body):
        if found := _SENTENCE.search(message):
            return Failure(found[1], message)
        if _OLD_SENTENCE.search(message) or _GRAMMAR_SENTENCE.search(message):
            return Failure(UNNAMED_FORMAT, message)
    return None


def messages_in(body: bytes) -> Iterator[str]:
    """Yield the error messages in a JSON body, whatever is around them; none where it is no JSON."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return
    yield from _messages(document, _MAX_DEPTH)


def _messages(value: Any, depth: int) -> Iterator[str]:
    if not isinstance(value, dict) or depth == 0:
        return
    for key, member in value.items():
        if isinstance(member, str) and key in _MESSAGE_KEYS:
            yield member
        else:
            yield from _messages(member, depth - 1)
