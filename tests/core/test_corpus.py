"""Raw outputs of all families that others recorded, read without being told the family."""

import json
import re
from collections import Counter
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


if NAMED:  # there is nothing to collect where PEGMEND_CORPUS names no file

    @pytest.mark.parametrize("case", NAMED, ids=lambda case: case.id)
    def test_the_named_corpus_is_read_right(case: Case) -> None:
        assert outcome_of(case) == (decided(case.id) or "right")

    def test_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
        gate = Counter(case.family for case in NAMED if case.is_gate)
        right = Counter(case.family for case in NAMED if outcome_of(case) == "right")
        gate_right = Counter(case.family for case in NAMED if case.is_gate and outcome_of(case) == "right")
        with capsys.disabled():
            print(f"\n{'family':24}{'several engines agree':>24}{'all cases':>16}")
            for family, total in sorted(Counter(case.family for case in NAMED).items()):
                print(f"{family:24}{gate_right[family]:>16} / {gate[family]:<5}{right[family]:>8} / {total}")
            print(f"{'all':24}{gate_right.total():>16} / {gate.total():<5}{right.total():>8} / {len(NAMED)}")
        undecided = {case.id for case in NAMED if outcome_of(case) != "right" and not decided(case.id)}
        assert not undecided


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


def test_every_decision_has_a_reason_of_its_own() -> None:
    reasons = [decision.reason for decision in DECISIONS]
    cases = [case for decision in DECISIONS for cases in decision.cases.values() for case in cases]
    assert len(set(reasons)) == len(reasons)
    assert len(set(cases)) == len(cases)
