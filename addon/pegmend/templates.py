"""What an engine's answers say of its chat template: which histories it refuses."""

import re
from typing import Any

import httpx
import orjson

from pegmend.completion import url_of
from pegmend.failure import find_failure, messages_in

# What templates say, anywhere in the engine's message, by the adaptation that helps: "This model only supports single
# tool-calls at once!" (Llama 3), "Tool call IDs should be alphanumeric strings with length 9!" (Mistral).
_REFUSALS = {
    "unfolded": re.compile(r"single tool[- ]?calls? at once", re.IGNORECASE),
    "ids": re.compile(r"tool call ids? should be alphanumeric strings with length 9", re.IGNORECASE),
}
_PROPS_SECONDS = 2.0
_LIMITS = frozenset({"stream_options", "max_completion_tokens", "n_predict"})


def refusal_in(status: int, body: bytes) -> str | None:
    """Return the adaptation that a template's refusal asks for (status 400 or 500), None for other responses."""
    if status not in (400, 500):
        return None
    messages = list(messages_in(body))
    return next((kind for kind, said in _REFUSALS.items() if any(map(said.search, messages))), None)


def one_token_request(body: dict[str, Any]) -> bytes:
    """Return the request that shows whether the template takes a history: the same for a single token."""
    asked = {name: value for name, value in body.items() if name not in _LIMITS}
    return orjson.dumps({**asked, "max_tokens": 1, "stream": False, "n": 1})


def takes_several_by_answer(status: int, body: bytes) -> bool | None:
    """Return what the answer to such a request shows, None where it shows nothing of the template."""
    if refusal_in(status, body) == "unfolded":
        return False
    # A single token may well be no whole call: then the output is refused, and the history was not.
    return True if status == 200 or find_failure(status, body) else None


async def takes_several_by_props(chat_url: str, *, verify_tls: bool) -> bool | None:
    """Return what a plain llama-server says at /props, None where there is nothing: behind Docker Model Runner."""
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=_PROPS_SECONDS, verify=verify_tls) as client:
            response = await client.get(url_of(chat_url, "props"))
        takes_several = orjson.loads(response.content)["chat_template_caps"]["supports_parallel_tool_calls"]
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError):
        return None
    return takes_several if response.status_code == 200 and isinstance(takes_several, bool) else None
