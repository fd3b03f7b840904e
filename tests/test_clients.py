"""The report's prompt, sent by the clients that people use."""

import json
import subprocess
from pathlib import Path

import pytest
from openai import APIError, OpenAI, UnprocessableEntityError

from tests.engine import Engine
from tests.engine.proxy import Proxy
from tests.engine.scripts import LOG_ENTRY, REPORT_PROMPT, SUMMARY, TOOLS

NODE = Path(__file__).parent / "node"


@pytest.mark.parametrize("way", ["HTTP_PROXY", "base URL"])
def test_openai_python(engine: Engine, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    if way == "HTTP_PROXY":
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, proxy.regular)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        base_url = engine.base_url
    else:
        base_url = engine.base_url.replace(engine.origin, proxy.reverse)
    logged_before = len(proxy.log_text())
    with OpenAI(base_url=base_url, api_key="none") as client:
        completion = client.chat.completions.create(
            model="scripted", messages=[{"role": "user", "content": REPORT_PROMPT}], tools=TOOLS
        )
    choice = completion.choices[0]
    assert choice.finish_reason == "tool_calls"
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls or []]
    assert calls == [("write_file", SUMMARY), ("write_file", LOG_ENTRY)]
    assert "repaired; evidence=replay; calls=2" in proxy.log_text()[logged_before:]


def test_openai_python_accumulates_a_stream(engine: Engine, proxy: Proxy) -> None:
    base_url = engine.base_url.replace(engine.origin, proxy.reverse)
    with (
        OpenAI(base_url=base_url, api_key="none") as client,
        client.chat.completions.stream(
            model="scripted",
            messages=[{"role": "user", "content": REPORT_PROMPT}],
            tools=TOOLS,
            stream_options={"include_usage": True},
        ) as stream,
    ):
        completion = stream.get_final_completion()
    choice = completion.choices[0]
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls or []]
    assert calls == [("write_file", SUMMARY), ("write_file", LOG_ENTRY)]
    assert choice.finish_reason == "tool_calls"
    assert completion.usage is not None
    assert completion.usage.completion_tokens > 0


@pytest.mark.skipif(not (NODE / "node_modules").exists(), reason="npm is not there to install openai-node")
@pytest.mark.parametrize("way", ["stream", "whole"])
def test_openai_node(engine: Engine, proxy: Proxy, way: str) -> None:
    base_url = engine.base_url.replace(engine.origin, proxy.reverse)
    command = ["node", str(NODE / "report.mjs"), base_url, REPORT_PROMPT, json.dumps(TOOLS), way]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    calls = [["write_file", SUMMARY], ["write_file", LOG_ENTRY]]
    assert json.loads(ended.stdout) == {"finish_reason": "tool_calls", "calls": calls}


def test_openai_python_raises_on_the_error_event(engine: Engine, proxy: Proxy) -> None:
    base_url = engine.base_url.replace(engine.origin, proxy.reverse)
    with OpenAI(base_url=base_url, api_key="none") as client, pytest.raises(APIError, match="tool_calls_undeclared"):
        list(
            client.chat.completions.create(
                model="scripted",
                messages=[{"role": "user", "content": "script:undeclared "}],
                tools=TOOLS,
                stream=True,
            )
        )


def test_openai_python_sees_the_documented_error_once(engine: Engine, proxy: Proxy) -> None:
    base_url = engine.base_url.replace(engine.origin, proxy.reverse)
    logged_before = len(proxy.log_text())
    with (
        OpenAI(base_url=base_url, api_key="none") as client,
        pytest.raises(UnprocessableEntityError, match="tool_calls_undeclared"),
    ):
        client.chat.completions.create(
            model="scripted", messages=[{"role": "user", "content": "script:undeclared "}], tools=TOOLS
        )
    assert proxy.log_text()[logged_before:].count("pegmend: ") == 1
