"""The way around every parser, as tables."""

import json
from typing import Any

import pytest

from pegmend.completion import as_chat_completion, completion_request, prompt_in, url_of, with_whole_texts
from pegmend.dialects.openai_chat import BadCompletion, ChatRequest
from pegmend.failure import find_failure


@pytest.mark.parametrize(
    "chat_url",
    ["http://h:1/v1/chat/completions", "http://h:1/chat/completions", "http://h:1/v1/chat/completions/?x=/v1"],
)
def test_the_endpoints_stand_beside_the_chat(chat_url: str) -> None:
    assert url_of(chat_url, "completion") == "http://h:1/completion"


@pytest.mark.parametrize("prefix", ["/api", "/engines/llama.cpp", "/v1/chat/completions", "/v1"])
def test_the_endpoints_have_the_prefix_of_the_chat(prefix: str) -> None:
    chat_url = f"http://chat{prefix}/v1/chat/completions?x=/chat/completions"
    assert url_of(chat_url, "props") == f"http://chat{prefix}/props"


def test_the_sampling_of_the_request_is_kept() -> None:
    body = {"messages": [], "tools": [{}], "seed": 7, "temperature": 0.2, "max_tokens": 9, "stream": True, "n": 1}
    sent = json.loads(completion_request(body, "<s>Hi"))
    assert "<|channel|>" in sent.pop("preserved_tokens")
    assert sent == {"seed": 7, "temperature": 0.2, "n_predict": 9, "stream": False, "prompt": "<s>Hi"}


@pytest.mark.parametrize(("stop_type", "finish_reason"), [("eos", "stop"), ("limit", "length"), ("word", "stop")])
@pytest.mark.parametrize(
    ("prompt", "opened"), [("<|user|>x<|assistant|>", ""), ("x<think>\n", "<think>\n"), ("<think>\n</think>\n", "")]
)
def test_a_completion_becomes_the_answer_of_a_raw_replay(
    stop_type: str, finish_reason: str, prompt: str, opened: str
) -> None:
    answer = {"content": "text", "stop_type": stop_type, "tokens_evaluated": 5, "tokens_predicted": 2}
    body = json.loads(as_chat_completion(ChatRequest({"model": "m"}), prompt, json.dumps(answer).encode()))
    assert body["choices"][0]["message"]["content"] == opened + "text"
    assert body["choices"][0]["finish_reason"] == finish_reason
    assert body["usage"] == {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}


@pytest.mark.parametrize("answer", [b"", b"[]", b"{}", b'{"content": 1, "prompt": null}'])
def test_another_answer_is_none(answer: bytes) -> None:
    with pytest.raises(BadCompletion):
        prompt_in(answer)
    with pytest.raises(BadCompletion):
        as_chat_completion(ChatRequest({}), "", answer)


def listed(*tokens: str | bytes) -> bytes:
    """Return a completion whose content is the first of the tokens, with all of them."""
    pieces = [token.encode() if isinstance(token, str) else token for token in tokens]
    choice = {
        "message": {"content": pieces[0].decode()},
        "logprobs": {"content": [{"bytes": list(piece)} for piece in pieces[1:]]},
        "finish_reason": "stop",
    }
    return json.dumps({"id": "x", "choices": [choice]}).encode()


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (listed("Hi {a}", "Hi ", "{a}"), "Hi {a}"),
        (listed("<think>\nHm.</think>Hi", "Hm.", "</think>", "Hi"), "<think>\nHm.</think>Hi"),
        (listed("Hi", "Hi", "\nStop", ":"), "Hi"),
        (listed("Hi", "<|im_start|>", "Hi", "<|im_end|>"), "Hi"),
        (listed("漢", b"\xe6\xbc", b"\xa2"), "漢"),
        (
            listed("Hi", "<|channel|>", "final", "<|message|>", "Hi", "<|end|>", "<|start|>", "assistant to=x"),
            "<|channel|>final<|message|>Hi<|end|><|start|>assistant to=x",
        ),
        (listed("", "<|channel|>", "x"), "<|channel|>x"),
        (listed("Hi<|end|>", "Hi", "<|end|>", "<|start|>", "more"), "Hi<|end|><|start|>more"),
    ],
)
def test_a_text_is_whole_that_lacks_no_token(answer: bytes, text: str) -> None:
    (choice,) = json.loads(with_whole_texts(answer, ["\nStop:"]))["choices"]
    assert choice == {"message": {"content": text}, "finish_reason": "stop"}


@pytest.mark.parametrize("tokens", [None, [], [{}], [{"bytes": [300]}], [{"bytes": "x"}], [{"bytes": 10}], 1])
def test_without_tokens_nothing_is_whole(tokens: Any) -> None:
    body = {"choices": [{"message": {"content": "Hi"}, "logprobs": {"content": tokens}}]}
    with pytest.raises(BadCompletion):
        with_whole_texts(json.dumps(body).encode(), [])


def test_the_failure_of_the_grammar_is_the_failure() -> None:
    message = "got exception: Unexpected empty grammar stack after accepting piece: > (448)"
    failure = find_failure(500, json.dumps({"error": {"message": message}}).encode())
    assert failure is not None
    assert failure.message == message
