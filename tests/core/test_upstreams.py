"""Which traffic is pegmend's."""

import pytest

from pegmend.upstreams import is_chat_path

PREFIXES = ["", "/v1", "/engines/v1", "/engines/llama.cpp/v1", "/api/v1", "/openai", "/my/prefix/v1"]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("end", ["", "/", "?x=/y", "/?x"])
def test_any_prefix_may_stand_before_the_chat(prefix: str, end: str) -> None:
    assert is_chat_path(f"{prefix}/chat/completions{end}")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/completions",
        "/v1/chat/completions/x",
        "/v1/chat/completionsx",
        "/v1/xchat/completions",
        "/v1/embeddings?x=/chat/completions",
        "chat/completions",
        "",
    ],
)
def test_other_paths_are_no_chats(path: str) -> None:
    assert not is_chat_path(path)
