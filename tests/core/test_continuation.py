"""What follows what was sent: by the whole text, and by the end of it from the log."""

import pytest

from pegmend.continuation import Rest, SentCall, SentChoice, rest_of_remainder, rest_of_text
from pegmend.errors import Incomplete
from pegmend.rawoutput import read
from pegmend.turn import ToolCall, Turn

A = '{"name": "read", "parameters": {"path": "a"}}'
B = '{"name": "time", "parameters": {}}'
SENT_A = SentCall("read", '{"path": "a"}')
CALL_B = ToolCall("time", "{}")


def reading(text: str) -> Turn:
    return read(text, {"read": {}, "time": {}})


@pytest.mark.parametrize("remainder", [f"; {B}", B, f", {B}]", f"\n{B}\n"])
def test_whole_calls_and_the_end_of_the_text_make_the_turn(remainder: str) -> None:
    assert rest_of_remainder(SentChoice(calls=[SENT_A]), remainder, reading) == Rest(calls=(CALL_B,))


@pytest.mark.parametrize(
    ("sent", "remainder"),
    [
        ([], f"; {B}"),
        ([SentCall("read", '{"path": "a"')], f"; {B}"),
        ([SentCall("read", "{}")], f"; {B}"),  # the engine sends {} for arguments that are no object
        ([SENT_A], f"{A}; {B}"),  # nothing was parsed in the end
        ([SENT_A], f"; {A}; {B}"),
        ([SENT_A], f"\n<think>hm {B}"),
        (
            [SENT_A, SentCall("read", '{"path": "b"}')],
            ', {"name": "read", "parameters": {"path":"b"}, "id": "1"}, ' + B,
        ),
        ([SentCall("read", '{"path":"café"}')], '{"name": "read", "arguments": {"path": "caf\\u00e9"}}; ' + B),
    ],
)
def test_what_is_not_certain_is_none(sent: list[SentCall], remainder: str) -> None:
    assert rest_of_remainder(SentChoice(calls=sent), remainder, reading) is None


@pytest.mark.parametrize("separator", ["; ", "\n", " ", ", "])
def test_separators_before_words_are_none(separator: str) -> None:
    rest = rest_of_remainder(SentChoice(content="Hi", calls=[SENT_A]), f"{separator}Bye.", reading)
    assert rest == Rest(content="Bye.")


def test_nothing_is_left_of_a_choice_that_is_finished() -> None:
    assert rest_of_text(SentChoice(calls=[SENT_A], is_finished=True), f"{A}; {B}", reading) == Rest()


@pytest.mark.parametrize(
    ("sent", "rest"),
    [
        (SentChoice(), Rest(calls=(ToolCall("read", '{"path": "a"}'), CALL_B), content="Hi")),
        (SentChoice(content="H"), Rest(calls=(ToolCall("read", '{"path": "a"}'), CALL_B), content="i")),
        (SentChoice(content="Hi\n", calls=[SentCall("read", '{"pa')]), Rest(arguments='th": "a"}', calls=(CALL_B,))),
        (SentChoice(content="Hi\n", calls=[SENT_A, SentCall("time", "{")]), Rest(arguments="}")),
    ],
)
def test_the_whole_text_gives_what_is_left(sent: SentChoice, rest: Rest) -> None:
    assert rest_of_text(sent, f"Hi\n{A}; {B}", reading) == rest


@pytest.mark.parametrize(
    "sent",
    [
        SentChoice(content="Ho"),
        SentChoice(calls=[SentCall("time", "{")]),
        SentChoice(calls=[SentCall("read", '{"path": "b')]),
        SentChoice(calls=[SentCall("read", '{"pa'), SentCall("time", "{")]),
        SentChoice(calls=[SENT_A, SentCall("time", "{}"), SentCall("time", "{}")]),
        SentChoice(reasoning="hm"),
    ],
)
def test_another_run_is_not_mixed_in(sent: SentChoice) -> None:
    with pytest.raises(Incomplete):
        rest_of_text(sent, f"Hi\n{A}; {B}", reading)
