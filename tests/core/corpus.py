"""Recorded raw outputs with their right reading, from collections that others made.

`canitoolcall` is a public package. Another file in JSON Lines can be named by the environment variable PEGMEND_CORPUS:
one object a line with `id`, `family`, `tier`, `partial`, `tools`, `raw`, `generation_prompt`, `reasoning_format`,
`expected_calls`, `expected_content`, `expected_reasoning` and `notes`.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from canitoolcall.fixtures import Fixture

from pegmend.rawoutput import Tools

# What a prompt may have opened last, and what would have closed it again. The engine puts such an opening in front of
# the raw text.
_OPENING = re.compile(
    r"<think>|<seed:think>|<mm:think>|<\|START_THINKING\|>|<\|channel>thought|\[THINK\]|<\|open\|>think<\|sep\|>"
    r"|<\|channel\|>(?:analysis|final)<\|message\|>|>>>(?:all\n)?"
    r"|Here are my reasoning steps:\n"
)
_CLOSING = re.compile(
    r"</think>|</seed:think>|</mm:think>|<\|END_THINKING\|>|<channel\|>|\[/THINK\]|<\|close\|>think|<\|end\|>"
    r"|\[BEGIN FINAL RESPONSE\]"
)
# Sources without a generation prompt whose tests switch thinking on, so that the prompt had opened it.
_IN_THOUGHT = (
    "ollama-cogito-L193",
    "ollama-deepseek3-L626",
    "ollama-qwen3vl_thinking-L135",
    "ollama-qwen3vl_thinking-L157",
    "ollama-qwen3vl_thinking-L27",
)


@dataclass(frozen=True)
class Case:
    """A raw output and its right reading. `content` and `reasoning` are None where the source does not tell.

    It often does not: there are tests with words around the calls, or with thoughts, that look at the calls alone.
    """

    id: str
    family: str
    is_gate: bool
    raw: str
    tools: Tools
    calls: list[dict[str, Any]]
    content: str | None
    reasoning: str | None


def load(path: Path) -> list[Case]:
    """Return the cases of a file in JSON Lines."""
    with path.open(encoding="utf-8") as lines:
        return [_case(json.loads(line)) for line in lines]


def named_corpus() -> list[Case]:
    """Return the cases of the file that PEGMEND_CORPUS names, none where it is not set."""
    path = os.environ.get("PEGMEND_CORPUS")
    return load(Path(path)) if path else []


def opened_by_prompt(generation_prompt: str) -> str:
    """Return what a generation prompt leaves open."""
    openings = list(_OPENING.finditer(generation_prompt))
    if not openings or _CLOSING.search(generation_prompt, openings[-1].end()):
        return ""
    return generation_prompt[openings[-1].start() :]


def tools_of(declared: Any) -> Tools:
    """Return tools in OpenAI's format as the reader takes them."""
    functions = [tool.get("function", tool) for tool in declared]
    return {function["name"]: function.get("parameters") or {} for function in functions}


def raw_of(fixture: Fixture) -> str:
    """Return the raw text of a fixture, with what the prompt had opened."""
    opened = opened_by_prompt(fixture.generation_prompt or "")
    if not opened and "x-think-no-open-tag" in fixture.tags:
        opened = "<|open|>think<|sep|>" if "x-kimi-k3" in fixture.tags else "<think>"
    return opened + fixture.raw_output


def _case(row: Mapping[str, Any]) -> Case:
    calls = row["expected_calls"]
    # Where the source declares no tools, any name counts as declared.
    tools = tools_of(row["tools"]) or {call["name"]: {} for call in calls} or {"some_tool": {}}
    notes = row["notes"] or ""
    is_prefilled = "assistant-prefill" in notes
    is_unsplit = "not split" in notes or row["reasoning_format"] == "none"
    content, reasoning = row["expected_content"], row["expected_reasoning"]
    return Case(
        row["id"],
        row["family"],
        row["tier"] in ("consensus", "majority") and not row["partial"],
        _opening(row) + row["raw"],
        tools,
        calls,
        None
        if is_prefilled or (is_unsplit and (_OPENING.search(row["raw"]) or _CLOSING.search(row["raw"])))
        else content,
        None if is_prefilled or is_unsplit else reasoning,
    )


def _opening(row: Mapping[str, Any]) -> str:
    """Return what the prompt left open, unless the text is a rendering that closes nothing, as no model writes it."""
    opened = "<think>" if row["id"] in _IN_THOUGHT else opened_by_prompt(row["generation_prompt"] or "")
    is_rendering = row["id"].startswith("render") or row["reasoning_format"] == "none"
    if opened.startswith(">>>"):  # no thought, but the beginning of what the model writes
        return opened
    return "" if is_rendering and not _CLOSING.search(row["raw"]) else opened
