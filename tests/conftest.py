"""The engine and the proxies that the tests share."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.engine import Engine, write_model
from tests.engine.proxy import Proxy
from tests.engine.scripts import CONVERSATION, MERGED, REPORT_PROMPT, SCRIPTS, TOOLS
from tests.engine.server import API_PREFIX

CHAT_PATH = f"{API_PREFIX}/v1/chat/completions"


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripted model that knows every script."""
    path = tmp_path_factory.mktemp("model") / "scripted.gguf"
    write_model(path, {**SCRIPTS, "conversation": CONVERSATION}, default="semicolon-space", merged=MERGED)
    return path


@pytest.fixture(scope="session")
def engine(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A llama-server with that model."""
    with Engine(model, tmp_path_factory.mktemp("engine") / "llama-server.log") as running:
        yield running


@pytest.fixture(scope="session")
def proxy(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A mitmdump with the addon in front of the engine."""
    with Proxy(engine.origin, tmp_path_factory.mktemp("proxy")) as running:
        yield running


@pytest.fixture
def direct(engine: Engine) -> Iterator[httpx.Client]:
    """A client that talks to the engine itself."""
    with httpx.Client(base_url=engine.origin, trust_env=False, timeout=60) as client:
        yield client


@pytest.fixture
def mended(proxy: Proxy) -> Iterator[httpx.Client]:
    """A client that talks to the engine through pegmend."""
    with proxy.client() as client:
        yield client


@pytest.fixture
def start_proxy(engine: Engine, tmp_path: Path) -> Iterator[Callable[..., Proxy]]:
    """Start further proxies, with options of their own."""
    running: list[Proxy] = []

    def start(upstream: str = engine.origin, **settings: Any) -> Proxy:
        running.append(Proxy(upstream, tmp_path / f"proxy{len(running)}", **settings))
        return running[-1]

    yield start
    for one in running:
        one.stop()


def chat_request(script: str, **members: Any) -> dict[str, Any]:
    """Return a request that makes the model say `script`."""
    prompt = f"{REPORT_PROMPT} script:{script} "
    return {"model": "scripted", "messages": [{"role": "user", "content": prompt}], "tools": TOOLS, **members}


def two_calls(script: str = "plain", **members: Any) -> dict[str, Any]:
    """Return a request whose history holds two calls in one message."""
    calls = [
        {"id": number, "type": "function", "function": {"name": "get_time", "arguments": "{}"}} for number in ("1", "2")
    ]
    request = chat_request(script, **members)
    request["messages"] = [
        {"role": "user", "content": "What time is it?"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "2", "content": "two"},
        {"role": "tool", "tool_call_id": "1", "content": "one"},
        *request["messages"],
    ]
    return request


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the fault itself first: where it does not show, the other tests prove nothing."""
    items.sort(key=lambda item: item.path.name != "test_fault.py")
