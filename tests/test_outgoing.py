"""What pegmend changes in requests, and what the raw replay asks for."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from pegmend.dialects.openai_chat import ChatRequest
from tests.conftest import CHAT_PATH, chat_request
from tests.engine import Engine
from tests.engine.canned import CannedUpstream, http_response, in_turn
from tests.engine.proxy import Proxy
from tests.engine.scripts import TOOLS
from tests.engine.server import API_PREFIX
from tests.test_fail_open import FAILURE


@pytest.fixture(scope="module")
def upstream() -> Iterator[CannedUpstream]:
    with CannedUpstream(in_turn(http_response(200, b"{}"))) as running:
        yield running


@pytest.fixture(scope="module")
def canned_proxy(upstream: CannedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with Proxy(upstream.origin, tmp_path_factory.mktemp("proxy")) as running:
        yield running


def body_received(upstream: CannedUpstream, proxy: Proxy, body: bytes, path: str = CHAT_PATH) -> bytes:
    with proxy.client() as client:
        client.post(path, content=body)
    return upstream.requests[-1].partition(b"\r\n\r\n")[2]


WITH_TOOLS = b'{ "tools" : [ {"type":"function","function":{"name":"f"}} ],"note":"\\u00e9 \xc3\xa9"'


@pytest.mark.parametrize("end", [b"}", b" } \r\n", b',"seed":null}', b',"seed":-1}'])
def test_a_random_seed_is_spliced_in(upstream: CannedUpstream, canned_proxy: Proxy, end: bytes) -> None:
    seeds = set()
    for _ in range(2):
        received = body_received(upstream, canned_proxy, WITH_TOOLS + end)
        found = re.search(rb',"seed":(\d+)(?=\}\s*\Z)', received)
        assert found is not None
        assert received.replace(found.group(), b"") == WITH_TOOLS + end
        seeds.add(json.loads(received)["seed"])
    assert len(seeds) == 2


@pytest.mark.parametrize(
    "body",
    [
        WITH_TOOLS + b',"seed":7}',
        WITH_TOOLS + b',"seed":0}',
        b'{"messages":[{"content":"\\"tools\\""}]}',
        b'{"tools":[]}',
        b'{"tools":null}',
        b'["tools"]',
        WITH_TOOLS,
        b'"tools"\xff',
        b"",
    ],
)
def test_any_other_body_is_left_alone(upstream: CannedUpstream, canned_proxy: Proxy, body: bytes) -> None:
    assert body_received(upstream, canned_proxy, body) == body


def test_other_paths_are_left_alone(upstream: CannedUpstream, canned_proxy: Proxy) -> None:
    assert body_received(upstream, canned_proxy, WITH_TOOLS + b"}", "/v1/embeddings") == WITH_TOOLS + b"}"


def test_pinning_can_be_switched_off(upstream: CannedUpstream, start_proxy: Callable[..., Proxy]) -> None:
    proxy = start_proxy(upstream.origin, options=["pegmend_pin_seed=false"])
    assert body_received(upstream, proxy, WITH_TOOLS + b"}") == WITH_TOOLS + b"}"


def test_the_engine_takes_the_spliced_seed(engine: Engine, mended: httpx.Client, direct: httpx.Client) -> None:
    mended.post(CHAT_PATH, json=chat_request("single", seed=None))
    slots = direct.get(f"{API_PREFIX}/slots").json()
    latest = max((slot for slot in slots if "id_task" in slot), key=lambda slot: slot["id_task"])
    assert latest["params"]["seed"] not in (-1, 0xFFFFFFFF)


def test_the_raw_replay_is_the_same_request_without_its_tools(start_proxy: Callable[..., Proxy]) -> None:
    with CannedUpstream(in_turn(FAILURE, http_response(200, b"{}"))) as upstream:
        request = chat_request(
            "x",
            tool_choice="auto",
            parallel_tool_calls=True,
            chat_template_kwargs={"enable_thinking": False},
            temperature=0.7,
            seed=11,
        )
        with start_proxy(upstream.origin).client() as client:
            client.post(f"{CHAT_PATH}?k=v", json=request, headers={"Authorization": "Bearer secret", "X-Extra": "1"})
        original, replay = (one.partition(b"\r\n\r\n") for one in upstream.requests)
    assert original[0].splitlines()[0] == replay[0].splitlines()[0] == f"POST {CHAT_PATH}?k=v HTTP/1.1".encode()
    for line in (b"authorization: bearer secret", b"x-extra: 1", b"content-type: application/json"):
        assert line in original[0].lower()
        assert line in replay[0].lower()
    assert re.findall(rb"(?i)^host:.*$", original[0], re.M) == re.findall(rb"(?i)^host:.*$", replay[0], re.M)
    sent = json.loads(replay[2])
    kwargs = sent.pop("chat_template_kwargs")
    assert kwargs == {"enable_thinking": False, "tools": TOOLS}
    assert sent == {
        "model": "scripted",
        "messages": request["messages"],
        "temperature": 0.7,
        "seed": 11,
        "reasoning_format": "none",
        "stream": False,
    }


@pytest.mark.parametrize("title", ["Café".encode(), "Café".encode("latin-1"), b"\x80"])
def test_a_header_in_any_encoding_goes_along(start_proxy: Callable[..., Proxy], title: bytes) -> None:
    text = json.dumps({"name": "get_time", "parameters": {}})
    replay = http_response(200, json.dumps({"choices": [{"message": {"content": text}}]}).encode())
    with CannedUpstream(in_turn(FAILURE, replay)) as upstream, start_proxy(upstream.origin).client() as client:
        response = client.post(CHAT_PATH, json=chat_request("x"), headers=[(b"X-Title", title)])
    assert response.headers["x-pegmend"] == "repaired; evidence=replay; calls=1"
    assert [b"X-Title: " + title in request for request in upstream.requests] == [True, True]


FUNCTIONS: list[dict[str, Any]] = [
    {"name": "bare"},
    {"parameters": {"type": "object", "properties": {"b": {"type": "string"}, "a": {}}}, "name": "order"},
    {"name": "strict", "strict": True, "description": "d", "parameters": {"additionalProperties": False}, "x": 1},
    {"name": "numbers", "parameters": {"minimum": 1.0, "maximum": 1e30, "multipleOf": 123456789012345678901234}},
    {"name": "unicode", "description": 'décor "漢字" 😀 \n\t\\ <tag> & \u2028'},
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function["name"])
def test_the_raw_replay_renders_the_same_prompt(direct: httpx.Client, function: dict[str, Any]) -> None:
    request = chat_request("x", tools=[{"function": function, "type": "function", "extra": True}, TOOLS[0]])
    parsed = ChatRequest.parse(json.dumps(request).encode())
    assert parsed is not None
    prompts = [
        direct.post(f"{API_PREFIX}/apply-template", content=body).json()["prompt"]
        for body in (json.dumps(request).encode(), parsed.raw_replay())
    ]
    assert function["name"] in prompts[0]
    assert prompts[0] == prompts[1]
