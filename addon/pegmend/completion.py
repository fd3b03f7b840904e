"""The ways around a parser that is at work even where nothing is to be parsed.

For templates with a parser written by hand (gpt-oss, Functionary v3.2) the engine parses a raw replay too. It may leave
a call out of the answer (b10434: of gpt-oss' thoughts or words with a call behind them only the former come back); the
tokens, which it lists where probabilities are asked for, are whole all the same. And it may refuse the text again; then
a plain llama-server renders the prompt, and completes it as bare text, at two endpoints that Docker Model Runner does
not route.
"""

import codecs
import re
from collections.abc import Sequence
from typing import Any

import orjson

from pegmend.dialects.openai_chat import BadCompletion, ChatRequest, RawCompletion
from pegmend.rawoutput import opened_at_end
from pegmend.upstreams import CHAT_ENDPOINT

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
_CONTROL_TOKEN = re.compile(r"<[^<>\s]{1,100}>|\[/?[A-Z_]{1,40}\]")
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


def token_request(replay: bytes) -> bytes:
    """Return a raw replay that asks for the tokens as well.

    Probabilities after the sampling cost the engine least, for then it has sorted its candidates already.
    """
    return orjson.dumps({**orjson.loads(replay), "logprobs": True, "top_logprobs": 1, "post_sampling_probs": True})


def with_whole_texts(answer: bytes, stops: Sequence[str]) -> bytes:
    """Return a chat completion in which the text of each choice is whole: that of its tokens, where those say more.

    `stops` are the strings at which the client wants a text to end. Raises BadCompletion where a choice has no tokens,
    or the answer is no chat completion.
    """
    raw = RawCompletion.parse(answer)
    choices = []
    for choice, content in zip(raw.body["choices"], raw.texts, strict=True):
        whole = _whole_text(content, _token_texts(choice), stops)
        kept = {name: value for name, value in choice.items() if name != "logprobs"}
        choices.append({**kept, "message": {**choice["message"], "content": whole}})
    return orjson.dumps({**raw.body, "choices": choices})


def _token_texts(choice: dict[str, Any]) -> list[str]:
    logprobs = choice.get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(tokens, list) or not tokens:
        raise BadCompletion("a choice lists no tokens")
    try:
        # A character may be spread over several tokens: such pieces are put together with the token before.
        # Of a list: of a number, bytes() would make that many zeros.
        return _decoded([bytes([*token["bytes"]]) for token in tokens])
    except (KeyError, TypeError, ValueError) as error:
        raise BadCompletion("a token has no bytes") from error


def _decoded(pieces: list[bytes]) -> list[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return [decoder.decode(piece) for piece in pieces] + [decoder.decode(b"", final=True)]


def _whole_text(content: str, tokens: Sequence[str], stops: Sequence[str]) -> str:
    """Return `content` where it lacks nothing that was generated but control tokens and a stop string at the end."""
    text = "".join(tokens)
    words = "".join(token for token in tokens if not _CONTROL_TOKEN.fullmatch(token))
    for written in (text, words):
        is_stopped = written.startswith(content) and written.startswith(tuple(stops), len(content))
        # In front of the content stands what the prompt has opened.
        if content.endswith(written) or is_stopped:
            return content
    return text


def url_of(chat_url: str, endpoint: str) -> str:
    """Return the address of another endpoint of the engine that answers at `chat_url`."""
    prefix = chat_url.partition("?")[0].removesuffix("/").removesuffix(CHAT_ENDPOINT).removesuffix("/v1")
    return f"{prefix}/{endpoint}"


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
