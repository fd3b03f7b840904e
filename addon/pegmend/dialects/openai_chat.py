"""OpenAI chat completions: what a request declares, its raw replay, and a turn written as a response."""

import hashlib
import re
import secrets
import string
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from pegmend import errors, rawoutput
from pegmend.errors import TurnError, Unparseable
from pegmend.rawoutput import Tools
from pegmend.turn import ToolCall, Turn

_ID_ALPHABET = string.ascii_letters + string.digits
_OWN_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)
CHUNK_HEAD = ("created", "id", "model", "system_fingerprint", "object")
"""What all chunks of a stream share. The first one may hold more, such as the progress of the prompt."""

_ID_LENGTH = 32
"""The engine's own call ids are 32 alphanumerics."""


def _schema(function: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a tool's parameters; an empty one, which tells nothing, where there is none."""
    schema = function.get("parameters")
    return schema if isinstance(schema, dict) else {}


class BadCompletion(ValueError):
    """A body that should be a chat completion and is not; the message says what is wrong."""


@dataclass(frozen=True)
class ChatRequest:
    """A chat completion request: its parsed body, which is never changed."""

    body: dict[str, Any]

    @classmethod
    def parse(cls, raw: bytes) -> "ChatRequest | None":
        """Return the request in a body, None where the body is not a JSON object."""
        try:
            body = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return None
        return cls(body) if isinstance(body, dict) else None

    @property
    def has_tools(self) -> bool:
        """Whether any tool is declared."""
        return isinstance(self.body.get("tools"), list) and bool(self.body["tools"])

    @property
    def is_stream(self) -> bool:
        """Whether the client asked for a stream."""
        return self.body.get("stream") is True

    @property
    def wants_usage(self) -> bool:
        """Whether the client of a stream asked for token counts at its end."""
        options = self.body.get("stream_options")
        return isinstance(options, dict) and options.get("include_usage") is True

    @property
    def may_be_cut(self) -> bool:
        """Whether the client limits the length of the answer, so that the engine may have cut it."""
        return any(self.body.get(name) for name in ("max_tokens", "max_completion_tokens", "n_predict"))

    @property
    def choice_count(self) -> int:
        """How many turns the client asked for."""
        count = self.body.get("n")
        return count if isinstance(count, int) and count > 0 else 1

    @property
    def stops(self) -> list[str]:
        """The strings at which the client wants the text to end."""
        stops = self.body.get("stop")
        return [stop for stop in (stops if isinstance(stops, list) else [stops]) if isinstance(stop, str) and stop]

    @property
    def has_fixed_seed(self) -> bool:
        """Whether the same request would be answered the same way: null and -1 mean a random seed to the engine."""
        return self.body.get("seed") not in (None, -1)

    @cached_property
    def callable_tools(self) -> Tools:
        """The tools that the model may call: the declared ones, as far as `tool_choice` allows them."""
        if self._choice == "none":
            return {}
        declared = {function["name"]: _schema(function) for function in self._functions()}
        only = self._choice_name
        return {name: schema for name, schema in declared.items() if only in (None, name)}

    @property
    def requires_call(self) -> bool:
        """Whether `tool_choice` forbids an answer without a call."""
        return self._choice == "required" or self._choice_name is not None

    @property
    def _choice(self) -> Any:
        return self.body.get("tool_choice")

    @property
    def _choice_name(self) -> str | None:
        function = self._choice.get("function") if isinstance(self._choice, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        return name if isinstance(name, str) else None

    def _functions(self) -> Iterator[dict[str, Any]]:
        for tool in self.body["tools"] if self.has_tools else ():
            function = tool.get("function") if isinstance(tool, dict) else None
            if isinstance(function, dict) and isinstance(function.get("name"), str):
                yield function

    def read(self, text: str, *, truncated: bool = False) -> Turn:
        """Read a raw text with the tools that may be called. Raises a TurnError.

        Thoughts are content where the client wants them unparsed.
        """
        splits_thoughts = self.body.get("reasoning_format") != "none"
        return rawoutput.read(text, self.callable_tools, truncated=truncated, splits_thoughts=splits_thoughts)

    def raw_replay(self) -> bytes:
        """Return the body of the request whose answer is the model's raw text.

        `tools` is a variable of the chat template to the engine, and `chat_template_kwargs` sets such variables: the
        prompt stays the same, and without `tools` in the request no parser is at work. The engine hands the template
        tools that it has written anew: only these members in this order, an empty description where there is none. The
        same is done here, or the prompt would differ for tools with, say, `strict` (measured on b10434 with
        /apply-template).
        """
        body = dict(self.body)
        for name in ("tools", "tool_choice", "parallel_tool_calls", "stream_options"):
            body.pop(name, None)
        kwargs = body.get("chat_template_kwargs")
        if self.has_tools:
            tools = [_as_template_sees_it(function) for function in self._functions()]
            body["chat_template_kwargs"] = {**(kwargs if isinstance(kwargs, dict) else {}), "tools": tools}
        body["reasoning_format"] = "none"
        body["stream"] = False
        return orjson.dumps(body)


def _as_template_sees_it(function: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": function["name"],
            "description": function.get("description", ""),
            "parameters": function.get("parameters", {}),
        },
    }


@dataclass(frozen=True, slots=True)
class RawCompletion:
    """The answer to a raw replay: the completion, and the model's text for each choice."""

    body: dict[str, Any]
    texts: tuple[str, ...]

    @classmethod
    def parse(cls, raw: bytes) -> "RawCompletion":
        """Return the completion in a body. Raises BadCompletion for anything else."""
        try:
            body = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise BadCompletion("the body is not JSON") from error
        choices = body.get("choices") if isinstance(body, dict) else None
        if not isinstance(choices, list) or not choices:
            raise BadCompletion("the body has no choices")
        texts = []
        for choice in choices:
            message = choice.get("message") if isinstance(choice, dict) else None
            text = message.get("content") if isinstance(message, dict) else None
            if not isinstance(text, str):
                raise BadCompletion("a choice has no text")
            texts.append(text)
        return cls(body, tuple(texts))

    @classmethod
    def of_text(cls, request: ChatRequest, text: str) -> "RawCompletion":
        """Return a completion around a text that came another way; it knows no token counts."""
        message = {"role": "assistant", "content": text}
        body = {
            "choices": [{"finish_reason": "stop", "index": 0, "message": message}],
            "created": int(time.time()),
            "model": request.body.get("model"),
            "object": "chat.completion",
            "id": f"chatcmpl-{secrets.token_hex(_ID_LENGTH // 2)}",
        }
        return cls(body, (text,))

    @property
    def chunk_head(self) -> dict[str, Any]:
        """What the chunks of a stream with the same completion would share."""
        return {**{name: self.body.get(name) for name in CHUNK_HEAD}, "object": "chat.completion.chunk"}

    def is_truncated(self, choice: int) -> bool:
        """Whether the engine cut a choice's text."""
        return bool(self.body["choices"][choice].get("finish_reason") == "length")


def read_turns(request: ChatRequest, completion: RawCompletion) -> list[Turn]:
    """Return the turn of every choice. Raises a TurnError if any of them cannot be proven."""
    return [
        _read_turn(request, text, truncated=completion.is_truncated(index))
        for index, text in enumerate(completion.texts)
    ]


def _read_turn(request: ChatRequest, text: str, *, truncated: bool) -> Turn:
    turn = request.read(text, truncated=truncated)
    if request.requires_call and not turn.calls and not turn.truncated:
        message = f"tool_choice {request.body['tool_choice']!r} asks for a tool call, and the model made none."
        raise Unparseable(message, raw_output=text)
    return turn


def completion_body(completion: RawCompletion, turns: Sequence[Turn]) -> bytes:
    """Return a completion with the `turns` in it; all else (id, model, usage, timings) is the replay's."""
    choices = [
        {
            **choice,
            "finish_reason": finish_reason(turn.calls, truncated=turn.truncated),
            "message": _message(completion.body, index, turn),
        }
        for index, (choice, turn) in enumerate(zip(completion.body["choices"], turns, strict=True))
    ]
    return orjson.dumps({**completion.body, "choices": choices})


def finish_reason(calls: Sequence[object], *, truncated: bool) -> str:
    """Return why a turn with these calls ended, in OpenAI's words."""
    if truncated:
        return "length"
    return "tool_calls" if calls else "stop"


def _message(completion: dict[str, Any], choice: int, turn: Turn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": turn.content}
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    if turn.calls:
        message["content"] = turn.content or None
        ids = call_ids(str(completion.get("id")), choice, turn.calls)
        message["tool_calls"] = [
            {"id": one, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for one, call in zip(ids, turn.calls, strict=True)
        ]
    return message


def call_ids(completion_id: str, choice: int, calls: Sequence[ToolCall], before: Sequence[str] = ()) -> list[str]:
    """Return the ids of calls, with `before` being the ids of the calls in front of them in the choice.

    The model's own id is taken, as the engine takes it: templates of such families print it. Where there is none, or
    one twice, the id is 32 alphanumerics, always the same for the same place in the same completion. The completion's
    id is random, so the calls' ids are unique, and reading a capture again gives the same response.
    """
    ids: list[str] = []
    taken = set(before)
    for index, call in enumerate(calls, len(before)):
        is_fit = _OWN_ID.fullmatch(call.id) and call.id not in taken
        ids.append(call.id if is_fit else _generated_id(completion_id, choice, index))
        taken.add(ids[-1])
    return ids


def _generated_id(completion_id: str, choice: int, index: int) -> str:
    number = int.from_bytes(hashlib.sha256(f"{completion_id}/{choice}/{index}".encode()).digest())
    digits = []
    for _ in range(_ID_LENGTH):
        number, digit = divmod(number, len(_ID_ALPHABET))
        digits.append(_ID_ALPHABET[digit])
    return "".join(digits)


def error_body(error: TurnError) -> bytes:
    """Return the error in OpenAI's shape, with what was seen of the turn for people to read."""
    return orjson.dumps({"error": error_object(error)})


def error_object(error: TurnError) -> dict[str, Any]:
    """Return the value of `error` in the body."""
    return {
        "message": f"{error.message} See {error.documentation}",
        "type": errors.TYPE,
        "param": None,
        "code": error.code,
        "raw_output": error.bounded_raw_output,
        "recovered_tool_calls": [{"name": call.name, "arguments": call.arguments} for call in error.calls],
    }
