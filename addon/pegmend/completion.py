"""The way around every parser: a plain llama-server renders the prompt, and completes it as bare text.

For templates with a parser written by hand (gpt-oss, Functionary v3.2) the engine parses even what it is asked for raw:
it may refuse that too, and it may leave a call out of it (b10434: of gpt-oss' thoughts or words with a call behind them
only the former come back). Docker Model Runner does not route these two endpoints.
"""

import re
from typing import Any

import orjson

from pegmend.dialects.openai_chat import BadCompletion, ChatRequest, RawCompletion
from pegmend.rawoutput import opened_at_end

_CHAT_SUFFIX = re.compile(r"(?:/v1)?/chat/completions.*\Z", re.DOTALL)
# Not for the completion of a text: the conversation and what forms it, and what the answer is to look like.
_CHAT_ONLY = frozenset(
    {
        "chat_template_kwargs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "n",
        "parallel_tool_calls",
        "reasoning_format",
        "response_format",
        "stream",
        "stream_options",
        "tool_choice",
        "tools",
    }
)
# Control tokens are dropped from a text unless they are asked for: those of the families with such a parser.
_PRESERVED = (
    "<|start|>",
    "<|channel|>",
    "<|constrain|>",
    "<|message|>",
    "<|end|>",
    "<|call|>",
    "<|return|>",
    "<|eom|>",
    "<|eot|>",
    "<|python_tag|>",
)


def may_lack_text(raw: RawCompletion) -> bool:
    """Whether a raw replay was parsed after all, so that something may be missing from its text.

    It holds markers of gpt-oss, or more tokens were generated than the text has bytes; a token or two print nothing.
    """
    (text,) = raw.texts
    usage = raw.body.get("usage")
    written = usage.get("completion_tokens") if isinstance(usage, dict) else None
    is_short = isinstance(written, int) and written > len(text.encode()) + 2
    return is_short or "<|channel|>" in text or "<|message|>" in text


def url_of(chat_url: str, endpoint: str) -> str:
    """Return the address of another endpoint of the engine that answers at `chat_url`."""
    return _CHAT_SUFFIX.sub(f"/{endpoint}", chat_url)


def prompt_in(answer: bytes) -> str:
    """Return the prompt that /apply-template made of a conversation. Raises BadCompletion."""
    prompt = _object(answer).get("prompt")
    if not isinstance(prompt, str):
        raise BadCompletion("the rendered conversation has no prompt")
    return prompt


def completion_request(body: dict[str, Any], prompt: str) -> bytes:
    """Return the body for /completion: the request's own sampling, its seed included, on a rendered prompt."""
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    sampling = {name: value for name, value in body.items() if name not in _CHAT_ONLY}
    limited = {"n_predict": limit} if limit else {}
    return orjson.dumps({**sampling, **limited, "prompt": prompt, "stream": False, "preserved_tokens": _PRESERVED})


def as_chat_completion(request: ChatRequest, prompt: str, answer: bytes) -> bytes:
    """Return what /completion answered as the chat completion that a raw replay would have brought.

    Raises BadCompletion where the answer is no completion.
    """
    body = _object(answer)
    text = body.get("content")
    if not isinstance(text, str):
        raise BadCompletion("the completion has no content")
    # A raw replay begins with what the prompt has opened.
    chat = RawCompletion.of_text(request, opened_at_end(prompt) + text).body
    chat["choices"][0]["finish_reason"] = "length" if body.get("stop_type") == "limit" else "stop"
    if isinstance(body.get("model"), str):
        chat["model"] = body["model"]
    read, written = body.get("tokens_evaluated"), body.get("tokens_predicted")
    if isinstance(read, int) and isinstance(written, int):
        chat["usage"] = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    return orjson.dumps(chat)


def _object(answer: bytes) -> dict[str, Any]:
    try:
        body = orjson.loads(answer)
    except orjson.JSONDecodeError as error:
        raise BadCompletion("the answer is not JSON") from error
    if not isinstance(body, dict):
        raise BadCompletion("the answer is no JSON object")
    return body
