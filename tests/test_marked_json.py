"""Calls in JSON between markers: the real engine, with a template of that kind, reads the same."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from pegmend.rawoutput import read
from tests.conftest import CHAT_PATH, chat_request
from tests.engine import Engine, write_model
from tests.engine.scripts import LOG_ENTRY, SUMMARY
from tests.test_recovery import calls_of

TEMPLATE = Path(__file__).parent / "engine" / "hermes.jinja"


def tagged(arguments: dict[str, Any]) -> str:
    return f"<tool_call>\n{json.dumps({'name': 'write_file', 'arguments': arguments})}\n</tool_call>"


A, B = tagged(SUMMARY), tagged(LOG_ENTRY)
HEALTHY = {"one": A, "two": f"{A}\n{B}", "prose-before": f"I will write it.\n{A}"}


@pytest.fixture(scope="module")
def hermes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("hermes")
    scripts = {name: [text] for name, text in HEALTHY.items()}
    write_model(folder / "scripted.gguf", scripts, default="one")
    with Engine(folder / "scripted.gguf", folder / "log", template=TEMPLATE) as running:
        yield running


@pytest.mark.parametrize("script", HEALTHY)
def test_the_engine_reads_what_we_read(hermes: Engine, script: str) -> None:
    with httpx.Client(base_url=hermes.origin, trust_env=False, timeout=60) as direct:
        message = direct.post(CHAT_PATH, json=chat_request(script)).json()["choices"][0]["message"]
    turn = read(HEALTHY[script], {"write_file"})
    assert [(call.name, json.loads(call.arguments)) for call in turn.calls] == calls_of(message)
    assert turn.content == (message["content"] or "").strip()
