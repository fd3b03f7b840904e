"""The page on the formats: every example is read, and every family has one."""

import json
import re
from pathlib import Path

import pytest

from pegmend.rawoutput import Tools, read
from pegmend.rawoutput.families import FAMILIES

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("## The formats") : PAGE.index("## What is not read")]
EXAMPLES = re.findall(r"^~~~text\n(.*?)\n~~~$", SECTION, re.MULTILINE | re.DOTALL)
TOOLS: Tools = {
    "get_weather": {"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
    "get_time": {"properties": {}},
}
NOT_OF_CALLS = {"ignored", "reasoning", "end_of_reasoning", "unfinished"}


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_makes_the_two_calls(example: str) -> None:
    turn = read(example, TOOLS)
    calls = [(call.name, json.loads(call.arguments)) for call in turn.calls]
    assert calls == [("get_weather", {"city": "Paris", "days": 3}), ("get_time", {})]
    assert turn.content == ""


def test_every_family_is_named() -> None:
    named = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^Famil(?:y|ies) (.*?)\. ", SECTION, re.MULTILINE))))
    assert named == {family.name for family in FAMILIES} - NOT_OF_CALLS


def test_the_page_tells_where_a_call_ends_thoughts() -> None:
    told = {
        name
        for section in SECTION.split("\n### ")[1:]
        if "A call ends thoughts" in " ".join(section.split())
        for name in re.findall(r"`(\w+)`", section.split("\n\n")[1].partition(". ")[0])
    }
    assert told == {family.name for family in FAMILIES if family.ends_reasoning}


def test_the_code_on_the_page_is_the_real_one() -> None:
    (code,) = re.findall(r"^~~~python\n(.*?)^~~~$", PAGE, re.MULTILINE | re.DOTALL)
    assert code == (Path(__file__).parents[2] / "addon/pegmend/rawoutput/families/react.py").read_text(encoding="utf-8")
