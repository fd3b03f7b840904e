"""Histories: what is unfolded how, and which arguments are made sound."""

from typing import Any

import pytest

from pegmend.history import has_long_ids, has_several_calls, unfolded, with_short_ids, with_sound_arguments
from pegmend.mojibake import without_mojibake

USER = {"role": "user", "content": "go"}


def call(number: str, arguments: Any = "{}") -> dict[str, Any]:
    return {"id": number, "type": "function", "function": {"name": f"f{number}", "arguments": arguments}}


def turn(*numbers: str, **members: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [call(number) for number in numbers], **members}


def result(number: str | None, content: str = "ok") -> dict[str, Any]:
    return {"role": "tool", "content": content} | ({"tool_call_id": number} if number else {})


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        (
            [USER, turn("1", "2"), result("1"), result("2"), USER],
            [USER, turn("1"), result("1"), turn("2"), result("2"), USER],
        ),
        # results in another order
        (
            [turn("1", "2", "3"), result("3", "c"), result("1", "a"), result("2", "b")],
            [turn("1"), result("1", "a"), turn("2"), result("2", "b"), turn("3"), result("3", "c")],
        ),
        # ids that come again in another turn
        (
            [turn("1", "2"), result("2", "b"), result("1", "a"), turn("1", "2"), result("1", "c"), result("2", "d")],
            [
                *(turn("1"), result("1", "a"), turn("2"), result("2", "b")),
                *(turn("1"), result("1", "c"), turn("2"), result("2", "d")),
            ],
        ),
        # the same id twice in one turn
        (
            [turn("1", "1"), result("1", "a"), result("1", "b")],
            [turn("1"), result("1", "a"), turn("1"), result("1", "b")],
        ),
        # results missing, extra, without ids
        ([turn("1", "2"), result("2"), USER], [turn("1"), turn("2"), result("2"), USER]),
        ([turn("1", "2"), USER], [turn("1"), turn("2"), USER]),
        (
            [turn("1", "2"), result("1"), result("9"), result("2")],
            [turn("1"), result("1"), turn("2"), result("2"), result("9")],
        ),
        (
            [turn("1", "2"), result(None, "a"), result(None, "b")],
            [turn("1"), result(None, "a"), turn("2"), result(None, "b")],
        ),
        (
            [turn("1", "2"), result(None, "b"), result("1", "a")],
            [turn("1"), result("1", "a"), turn("2"), result(None, "b")],
        ),
        # what stands beside the calls stays with the first
        (
            [turn("1", "2", content="Both.", reasoning_content="hm"), result("1"), result("2")],
            [turn("1", content="Both.", reasoning_content="hm"), result("1"), turn("2"), result("2")],
        ),
        # nothing to do
        ([USER, turn("1"), result("1"), turn(), {"role": "assistant", "content": "x"}], None),
        ([USER, "no message", None, {"tool_calls": "x"}], None),
    ],
)
def test_unfolding(history: list[Any], expected: list[Any] | None) -> None:
    assert unfolded(history) == (history if expected is None else expected)
    assert has_several_calls(history) is (expected is not None)
    assert unfolded(unfolded(history)) == unfolded(history)


@pytest.mark.parametrize("messages", [None, {}, "x", [], [1]])
def test_what_is_no_history_has_no_calls(messages: object) -> None:
    assert not has_several_calls(messages)
    assert with_sound_arguments(messages) is None
    assert without_mojibake(messages) is None


@pytest.mark.parametrize(
    ("arguments", "sound", "reason"),
    [
        ("", "{}", "empty arguments"),
        (" \n", "{}", "empty arguments"),
        ('"{\\"a\\": 1}"', '{"a": 1}', "arguments encoded twice"),
        ('{"a": "x\ny"}', '{"a": "x\\ny"}', "arguments with raw control character in a string"),
        ('{"a": "\\ud83d"}', '{"a": "\\ufffd"}', "arguments with half of a surrogate pair, escaped"),
        ('{"a": NaN}', '{"a": null}', "arguments with no number in JSON"),
    ],
)
def test_arguments_that_are_certain_are_made_sound(arguments: str, sound: str, reason: str) -> None:
    history = [USER, {"role": "assistant", "tool_calls": [call("1"), call("2", arguments)]}]
    repaired = with_sound_arguments(history)
    assert repaired is not None
    assert repaired[0][1]["tool_calls"] == [call("1"), call("2", sound)]
    assert repaired[1] == [f"messages[1].tool_calls[1]: {reason}"]
    assert with_sound_arguments(repaired[0]) is None
    assert history[1]["tool_calls"][1]["function"]["arguments"] == arguments


def test_missing_arguments_are_empty() -> None:
    repaired = with_sound_arguments([{"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}])
    assert repaired is not None
    assert repaired[0][0]["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}


@pytest.mark.parametrize(
    "arguments",
    ['{"a": 1.50, "b":"é"}', "{}", {"a": 1}, None, 5, "[1]", '"text"', '{"a": ', "no JSON", '{"a": "x" "b"}'],
)
def test_other_arguments_are_left_for_the_engine_to_judge(arguments: Any) -> None:
    assert with_sound_arguments([{"role": "assistant", "tool_calls": [call("1", arguments)]}]) is None


def test_mojibake_of_assistants_and_tools_is_undone() -> None:
    broken, sound = "dÃ©cor â€œvelvetâ€\x9d", "décor “velvet”"
    history = [{"role": role, "content": broken} for role in ("system", "user", "assistant", "tool")]
    repaired = without_mojibake(history)
    assert repaired is not None
    assert [message["content"] for message in repaired[0]] == [broken, broken, sound, sound]
    assert repaired[1] == ["messages[2].content: mojibake", "messages[3].content: mojibake"]


@pytest.mark.parametrize(
    "text", ["décor “velvet” 漢字 😀", "Ã is a letter", "&lt;b&gt; ﬁ it's \r\n\x1b[0m ½", "", "Voilà: 5 €"]
)
def test_sound_text_is_left_alone(text: str) -> None:
    assert without_mojibake([{"role": "tool", "content": text}]) is None


def test_calls_without_ids_get_none() -> None:
    history = [{"role": "assistant", "tool_calls": [{"function": {"name": "f"}}, {"function": {"name": "g"}}]}]
    assert with_short_ids(history) == history
    assert not has_long_ids(history)


def test_many_results_in_any_order() -> None:
    numbers = [str(number) for number in range(20_000)]
    history = unfolded([turn(*numbers), *map(result, reversed(numbers))])
    assert [message["tool_call_id"] for message in history[1::2]] == numbers


def test_short_ids_match_their_results() -> None:
    history = [USER, turn("call_abc", "abc123XYZ"), result("abc123XYZ"), result("call_abc"), result("unknown"), "x"]
    assert has_long_ids(history)
    shortened = with_short_ids(history)
    ids = [one["id"] for one in shortened[1]["tool_calls"]]
    assert ids[1] == "abc123XYZ"
    assert all(len(one) == 9 and one.isalnum() for one in ids)
    assert [one["tool_call_id"] for one in shortened[2:4]] == [ids[1], ids[0]]
    assert not has_long_ids(shortened)
    assert with_short_ids(shortened) == shortened
