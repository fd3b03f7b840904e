"""Many agents at once through one mitmdump: each gets its own calls and nobody else's."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import CHAT_PATH
from tests.engine import Engine, write_model
from tests.engine.model_runner import ModelRunner
from tests.engine.proxy import Proxy
from tests.engine.streams import accumulate

AGENTS = 32
TURNS = 6


def tool_of(agent: int) -> str:
    return f"tool_of_agent_{agent}"


def calls_of(agent: int, count: int) -> list[tuple[str, dict[str, Any]]]:
    return [(tool_of(agent), {"agent": agent, "call": number}) for number in range(count)]


def script_of(agent: int, count: int) -> str:
    return "; ".join(json.dumps({"name": name, "parameters": arguments}) for name, arguments in calls_of(agent, count))


@pytest.fixture(scope="module")
def crowd_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("crowd")
    scripts = {f"{agent}-{count}": [script_of(agent, count)] for agent in range(AGENTS) for count in (1, 2 + agent % 3)}
    write_model(folder / "scripted.gguf", scripts, default="0-1")
    with Engine(folder / "scripted.gguf", folder / "log", arguments=["--parallel", "8", "-c", "65536"]) as engine:
        yield engine


def run_agent(proxy: Proxy, agent: int) -> list[str]:
    """Run the turns of an agent, every third of which fails; returns how those were recovered."""
    recovered = []
    schema = {"type": "object", "properties": {"agent": {"type": "integer"}, "call": {"type": "integer"}}}
    tools = [{"type": "function", "function": {"name": tool_of(agent), "parameters": schema}}]
    with proxy.client() as client:
        for turn in range(TURNS):
            count = 2 + agent % 3 if turn % 3 == agent % 3 else 1
            messages = [{"role": "user", "content": f"Turn {turn}. script:{agent}-{count} "}]
            request = {"model": "m", "messages": messages, "tools": tools, "stream": turn % 2 == 0}
            response = client.post(CHAT_PATH, json=request)
            assert response.status_code == 200, response.text
            if request["stream"]:
                streamed = accumulate(response.text)
                calls, notes = streamed.calls, streamed.comments
            else:
                message = response.json()["choices"][0]["message"]
                functions = [call["function"] for call in message["tool_calls"]]
                calls = [(one["name"], json.loads(one["arguments"])) for one in functions]
                notes = [response.headers["x-pegmend"]] if "x-pegmend" in response.headers else []
            assert calls == calls_of(agent, count)
            assert len(notes) == (count > 1)
            recovered += notes
    return recovered


def test_every_agent_gets_its_own_calls(crowd_engine: Engine, tmp_path: Path) -> None:
    with (
        ModelRunner(crowd_engine) as runner,
        Proxy(runner.origin, tmp_path) as proxy,
        ThreadPoolExecutor(AGENTS) as pool,
    ):
        recovered = [note for notes in pool.map(lambda agent: run_agent(proxy, agent), range(AGENTS)) for note in notes]
        assert "Traceback" not in proxy.log_text()
    assert len(recovered) == AGENTS * TURNS // 3
    assert all("repaired" in note for note in recovered)


def test_clients_that_go_away_disturb_nobody(crowd_engine: Engine, tmp_path: Path) -> None:
    with ModelRunner(crowd_engine) as runner, Proxy(runner.origin, tmp_path) as proxy:

        def give_up(number: int) -> None:
            messages = [{"role": "user", "content": f"script:{number}-{2 + number % 3} "}]
            tools = [{"type": "function", "function": {"name": tool_of(number)}}]
            request = {"model": "m", "messages": messages, "tools": tools, "stream": True}
            with proxy.client() as client, client.stream("POST", CHAT_PATH, json=request) as response:
                pieces = response.iter_raw()
                for _ in range(number % 7):
                    next(pieces, None)

        with ThreadPoolExecutor(16) as pool:
            leaving = [pool.submit(give_up, number) for number in range(AGENTS)]
            staying = [pool.submit(run_agent, proxy, agent) for agent in range(8)]
            for one in [*leaving, *staying]:
                one.result()
        assert "Traceback" not in proxy.log_text()


def test_agents_that_share_a_connection(crowd_engine: Engine, tmp_path: Path) -> None:
    with Proxy(crowd_engine.origin, tmp_path) as proxy, httpx.Client(base_url=proxy.reverse, trust_env=False) as client:
        for agent in range(4):
            messages = [{"role": "user", "content": f"script:{agent}-{2 + agent % 3} "}]
            tools = [{"type": "function", "function": {"name": tool_of(agent)}}]
            request = {"model": "m", "messages": messages, "tools": tools, "stream": True}
            streamed = accumulate(client.post(CHAT_PATH, json=request, timeout=60).text)
            assert streamed.calls == calls_of(agent, 2 + agent % 3)
