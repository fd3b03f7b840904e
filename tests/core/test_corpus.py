"""Raw outputs of all families that others recorded, read without being told the family."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from canitoolcall.fixtures import Fixture, load_fixtures
from canitoolcall.pytest_plugin import assert_conforms
from canitoolcall.results import ParsedToolCall, ParseResult

from pegmend.errors import TurnError
from pegmend.rawoutput import read
from pegmend.turn import ToolCall
from tests.core.corpus import Case, named_corpus, raw_of, tools_of
from tests.core.corpus_decisions import DECISIONS, decided

# What a reader that knows the family leaves in no content.
_MARKER = re.compile(
    r"<\||\|>|｜>|</?(?:\w+:)?(?:tool_call|function|parameter|param|arg_|invoke)|\[/?[A-Z_]{4,}\]|\[<\]minimax"
)

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
NAMED = named_corpus()
FIXTURES = load_fixtures()


def outcome_of(case: Case) -> str:
    """Return "right", the code of the documented error, or what differs from the case's reading."""
    try:
        turn = read(case.raw, case.tools)
    except TurnError as error:
        is_undeclared = any(call["name"] not in case.tools for call in case.calls)
        return "right" if is_undeclared and error.code == "tool_calls_undeclared" else error.code
    if [_comparable(call, expected) for call, expected in zip(turn.calls, case.calls, strict=False)] != case.calls:
        return "other calls"
    if len(turn.calls) != len(case.calls):
        return "other calls"
    if case.content is None:
        if turn.calls and _MARKER.search(turn.content):
            return "other content"
    elif turn.content.strip() != case.content.strip():
        return "other content"
    if case.reasoning is not None and turn.reasoning.strip() != case.reasoning.strip():
        return "other reasoning"
    return "right"


def _comparable(call: ToolCall, expected: dict[str, Any]) -> dict[str, Any]:
    read_call = {"name": call.name, "arguments": json.loads(call.arguments)}
    return {**read_call, "id": call.id} if "id" in expected else read_call


def result_of(fixture: Fixture) -> ParseResult:
    """Return the reading of a fixture in the package's own terms."""
    try:
        turn = read(raw_of(fixture), tools_of(fixture.tools), truncated=fixture.truncated)
    except TurnError as error:
        return ParseResult(exception=f"{error.code}: {error}")
    calls = tuple(ParsedToolCall(call.name, call.arguments) for call in turn.calls)
    return ParseResult(turn.content or None, turn.reasoning or None, calls)


def print_and_compare(table: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Print a table, and assert that it stands in the documentation."""
    text = "\n".join(table)
    with capsys.disabled():
        print(f"\n{text}")
    assert PAGE.read_text(encoding="utf-8").count(text) == 1, f"{PAGE} has other figures"


if NAMED:  # there is nothing to collect where PEGMEND_CORPUS names no file

    @pytest.mark.parametrize("case", NAMED, ids=lambda case: case.id)
    def test_the_named_corpus_is_read_right(case: Case) -> None:
        assert outcome_of(case) == (decided(case.id) or "right")

    def test_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
        gate = Counter(case.family for case in NAMED if case.is_gate)
        right = [case for case in NAMED if outcome_of(case) == "right"]
        all_right = Counter(case.family for case in right)
        gate_right = Counter(case.family for case in right if case.is_gate)
        rows = [
            f"| {family} | {gate_right[family]} / {gate[family]} | {all_right[family]} / {total} |"
            for family, total in sorted(Counter(case.family for case in NAMED).items())
        ]
        rows.append(f"| all | {gate_right.total()} / {gate.total()} | {len(right)} / {len(NAMED)} |")
        print_and_compare(["| Family | Agreed | All |", "| --- | --- | --- |", *rows], capsys)


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.id)
def test_canitoolcall_is_read_right(fixture: Fixture) -> None:
    result = result_of(fixture)
    if outcome := decided(fixture.id):
        assert (result.exception or "other calls").startswith(outcome)
        with pytest.raises(AssertionError):
            assert_conforms(fixture, result, soft=True)
    elif fixture.expected_error is None or result.exception is None:
        # Where no call is right, a documented error always is: it delivers none, and it holds the whole text.
        assert_conforms(fixture, result, soft=True)


def test_the_figures_of_canitoolcall(capsys: pytest.CaptureFixture[str]) -> None:
    total = Counter(fixture.family for fixture in FIXTURES)
    right = Counter(fixture.family for fixture in FIXTURES if not decided(fixture.id))
    rows = [f"| {family} | {right[family]} / {total[family]} |" for family in sorted(total)]
    rows.append(f"| all | {right.total()} / {total.total()} |")
    print_and_compare(["| Family | Right |", "| --- | --- |", *rows], capsys)


def test_every_decision_has_a_reason_of_its_own() -> None:
    reasons = [decision.reason for decision in DECISIONS]
    cases = [case for decision in DECISIONS for cases in decision.cases.values() for case in cases]
    assert len(set(reasons)) == len(reasons)
    assert len(set(cases)) == len(cases)
