"""Whole conversations: three calls in one turn, their results, a second repaired turn, the last word."""

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from openai import APIError, AsyncOpenAI, OpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.conftest import CHAT_PATH
from tests.engine import Engine
from tests.engine.model_runner import ModelRunner
from tests.engine.proxy import Proxy
from tests.engine.scripts import CONVERSATION, CONVERSATION_CALLS, TOOLS
from tests.engine.streams import accumulate
from tests.test_clients import NODE

Message = dict[str, Any]
Ask = Callable[[list[Message]], Message]
PROMPT = "Put the files in order. script:conversation "
TOOL_RESULT = "décor “velvet” 5 €"
LAST_WORD = CONVERSATION[5]


@pytest.fixture(scope="module", params=["llama-server", "Docker Model Runner"])
def upstream(request: pytest.FixtureRequest, engine: Engine) -> Iterator[str]:
    """The engine itself, which tells of its template at /props, or a stand-in that does not pass that on."""
    if request.param == "llama-server":
        yield engine.origin
        return
    with ModelRunner(engine) as runner:
        yield runner.origin


@pytest.fixture(scope="module")
def agent_proxy(upstream: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with Proxy(upstream, tmp_path_factory.mktemp("proxy")) as running:
        yield running


def run_agent(ask: Ask) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    """Call tools until the model has nothing more to call; return the calls and the last word."""
    messages: list[Message] = [{"role": "user", "content": PROMPT}]
    calls = []
    while True:
        message = ask(messages)
        messages.append(message)
        if not message.get("tool_calls"):
            return calls, message["content"]
        for call in message["tool_calls"]:
            calls.append((call["function"]["name"], json.loads(call["function"]["arguments"])))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": TOOL_RESULT})


def asking(client: httpx.Client, *, stream: bool, encoding: str) -> Ask:
    """Return a function that asks with plain HTTP, in an encoding of one's own."""

    def ask(messages: list[Message]) -> Message:
        request = {"model": "scripted", "messages": messages, "tools": TOOLS, "stream": stream}
        body = json.dumps(request, ensure_ascii=False).encode(encoding)
        response = client.post(CHAT_PATH, content=body, headers={"Content-Type": "application/json"})
        response.raise_for_status()
        if not stream:
            message: Message = response.json()["choices"][0]["message"]
            return message
        streamed = accumulate(response.text)
        assert streamed.is_done, response.text
        return streamed.messages[0]

    return ask


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_whole_conversation(upstream: str, agent_proxy: Proxy, stream: bool, encoding: str) -> None:
    with agent_proxy.client() as client:
        assert run_agent(asking(client, stream=stream, encoding=encoding)) == (CONVERSATION_CALLS, LAST_WORD)
    with (
        httpx.Client(base_url=upstream, trust_env=False, timeout=60) as direct,
        pytest.raises((httpx.HTTPStatusError, AssertionError)),
    ):
        run_agent(asking(direct, stream=stream, encoding=encoding))


def asking_openai(client: OpenAI, *, stream: bool) -> Ask:
    def ask(messages: list[Message]) -> Message:
        request: Any = {"model": "scripted", "messages": messages, "tools": TOOLS}
        if stream:
            with client.chat.completions.stream(**request) as running:
                completion = running.get_final_completion()
        else:
            completion = client.chat.completions.create(**request)
        message: Message = completion.choices[0].message.to_dict()
        for call in message.get("tool_calls") or []:
            call["function"].pop("parsed_arguments", None)
        message.pop("parsed", None)
        return message

    return ask


@pytest.mark.parametrize("stream", [False, True])
def test_openai_python(upstream: str, agent_proxy: Proxy, stream: bool) -> None:
    with OpenAI(base_url=f"{agent_proxy.reverse}/engines/llama.cpp/v1", api_key="none") as client:
        assert run_agent(asking_openai(client, stream=stream)) == (CONVERSATION_CALLS, LAST_WORD)
    with (
        OpenAI(base_url=f"{upstream}/engines/llama.cpp/v1", api_key="none", max_retries=0) as direct,
        pytest.raises(APIError, match="does not match the expected peg-native format"),
    ):
        run_agent(asking_openai(direct, stream=stream))


@pytest.mark.skipif(not (NODE / "node_modules").exists(), reason="npm is not there to install openai-node")
@pytest.mark.parametrize("way", ["stream", "whole"])
def test_openai_node(upstream: str, agent_proxy: Proxy, way: str) -> None:
    def run(origin: str) -> "subprocess.CompletedProcess[str]":
        command = ["node", str(NODE / "agent.mjs"), f"{origin}/engines/llama.cpp/v1", PROMPT, json.dumps(TOOLS), way]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    ended = run(agent_proxy.reverse)
    assert ended.returncode == 0, ended.stderr
    calls = [[name, arguments] for name, arguments in CONVERSATION_CALLS]
    assert json.loads(ended.stdout) == {"calls": calls, "last": LAST_WORD}
    assert run(upstream).returncode != 0


def test_pydantic_ai(agent_proxy: Proxy) -> None:
    called: list[tuple[str, dict[str, Any]]] = []

    def read_file(path: str) -> str:
        called.append(("read_file", {"path": path}))
        return TOOL_RESULT

    def get_time() -> str:
        called.append(("get_time", {}))
        return "noon"

    def write_file(path: str, content: str) -> str:
        called.append(("write_file", {"path": path, "content": content}))
        return "written"

    async def run() -> str:
        base_url = f"{agent_proxy.reverse}/engines/llama.cpp/v1"
        async with AsyncOpenAI(base_url=base_url, api_key="none") as client:
            model = OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=client))
            agent = Agent(model, tools=[read_file, get_time, write_file])
            return (await agent.run(PROMPT)).output

    assert asyncio.run(run()) == LAST_WORD
    assert sorted(called, key=str) == sorted(CONVERSATION_CALLS, key=str)
