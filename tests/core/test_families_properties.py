"""What holds for every format: calls come back as they were written, and no text makes a call that it does not hold."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegmend.rawoutput import read
from pegmend.rawoutput.families import FAMILIES
from tests.families import (
    MAY_LACK_THE_LAST_TAG,
    PROSE,
    SAMPLE,
    SAMPLES,
    SOUP,
    THOUGHT_TAGS,
    TOOLS,
    WITHOUT_CALLS,
    WRITERS,
    Call,
    Document,
    assert_same,
    check_beginning,
    check_round_trip,
    check_thoughts,
    documents,
    markers_in,
    mixtures,
    mutants,
    read_safely,
)

formats = pytest.mark.parametrize("name", WRITERS)


def written_with(name: str, value: str) -> tuple[str, list[Call]]:
    """Return two calls in a format, the first with this value."""
    calls = [Call("read_file", {"path": value, "limit": 1}), Call("search", {"query": "x"})]
    return WRITERS[name].write(calls), calls


def test_every_family_has_a_writer() -> None:
    assert {writer.family for writer in WRITERS.values()} | WITHOUT_CALLS == {family.name for family in FAMILIES}


@formats
def test_every_kind_of_value_comes_back(name: str) -> None:
    check_round_trip(Document(SAMPLES[name], tuple(SAMPLE), formats=(name,)))


@formats
def test_numbers_of_any_size_come_back(name: str) -> None:
    calls = [Call("search", {"rows": [[2**64, -(2**70)]], "extra": {"n": 10**30}})]
    assert_same(read(WRITERS[name].write(calls), TOOLS).calls, calls)


@formats
def test_a_number_that_no_parser_reads_is_an_error_or_text(name: str) -> None:
    text = WRITERS[name].write([Call("read_file", {"ratio": 12345})])
    turn = read_safely(text.replace("12345", "1e999"))
    # Bare text that is no number stays text.
    assert turn is None or [json.loads(call.arguments) for call in turn.calls] == [{"ratio": "1e999"}]


@formats
def test_half_of_a_character_is_an_error_or_text(name: str) -> None:
    for arguments in ({"query": "@@"}, {"extra": {"a": ["@@"]}}):
        text = WRITERS[name].write([Call("search", arguments)])
        read_safely(text.replace("@@", "\\ud800"))


@formats
@settings(max_examples=20)
@given(data=st.data())
def test_any_calls_come_back_as_they_were_written(name: str, data: st.DataObject) -> None:
    check_round_trip(data.draw(documents([name])))


@settings(max_examples=150)
@given(mixtures())
def test_one_format_may_follow_another(document: Document) -> None:
    check_round_trip(document)


@formats
def test_a_value_that_holds_a_marker_of_its_own_format_is_whole_or_an_error(name: str) -> None:
    for marker in {*WRITERS[name].marks, *markers_in(SAMPLES[name])}:
        for value in (f"before {marker} after", f"{marker} after", f"{marker}\n{marker} after"):
            text, calls = written_with(name, value)
            turn = read_safely(text)
            if turn is None:
                assert not WRITERS[name].can_tell(calls), f"{value!r} is an error"
            else:
                assert_same(turn.calls, calls)


@formats
def test_no_beginning_of_a_text_holds_another_call(name: str) -> None:
    texts = [SAMPLES[name]]
    texts += [written_with(name, f"a {marker} b")[0] for marker in sorted(markers_in(SAMPLES[name]))]
    for text in texts:
        if read_safely(text) is None:
            continue
        for end in range(len(text)):
            check_beginning(text, end, truncated=True)
        for end in range(0, len(text), 7) if name not in MAY_LACK_THE_LAST_TAG else ():
            check_beginning(text, end, truncated=False)


@settings(max_examples=200)
@given(documents(), st.data())
def test_no_beginning_of_a_turn_that_was_cut_holds_another_call(document: Document, data: st.DataObject) -> None:
    check_beginning(document.text, data.draw(st.integers(0, len(document.text))), truncated=True)


@settings(max_examples=200)
@given(documents(sorted(WRITERS.keys() - MAY_LACK_THE_LAST_TAG)), st.data())
def test_no_beginning_of_any_turn_holds_another_call(document: Document, data: st.DataObject) -> None:
    check_beginning(document.text, data.draw(st.integers(0, len(document.text))), truncated=False)


@settings(max_examples=200)
@given(st.sampled_from(THOUGHT_TAGS), st.lists(documents() | SOUP, min_size=1, max_size=2), PROSE)
def test_calls_in_thoughts_are_none(tags: tuple[str, str], thoughts: list[Document | str], answer: str) -> None:
    opening, closing = tags
    thought = "\n".join(one.text if isinstance(one, Document) else one for one in thoughts)
    check_thoughts(opening, thought, closing, answer)


def test_a_call_in_thoughts_that_were_cut_is_none() -> None:
    check_beginning(
        f"<think>maybe {SAMPLES['qwen3-coder']}no</think>Hi",
        len(f"<think>maybe {SAMPLES['qwen3-coder']}"),
        truncated=True,
    )


@formats
def test_a_call_in_thoughts_does_not_hide_one_behind_them(name: str) -> None:
    for opening, closing in THOUGHT_TAGS:
        behind = [Call("time", {})]
        turn = read(f"{opening}{SAMPLES[name]}{closing}{WRITERS['hermes'].write(behind)}", TOOLS)
        assert_same(turn.calls, behind)


def test_inline_code_before_a_call_stays_whole() -> None:
    assert read('I will call `time`\n{"name": "time", "arguments": {}}', TOOLS).content == "I will call `time`"


def test_a_value_may_hold_the_token_at_the_end_of_a_text() -> None:
    calls = [Call("read_file", {"path": "a<eos>b"})]
    assert_same(read(f"<bos>{WRITERS['json'].write(calls)}<eos>", TOOLS).calls, calls)


def test_half_of_a_character_in_an_id_is_an_error_or_text() -> None:
    read_safely('{"name": "time", "arguments": {}, "id": "\\ud800"}')


def test_a_quoted_key_keeps_its_space() -> None:
    calls = [Call("search", {"extra": {"a ": 1}})]
    assert_same(read(WRITERS["gemma4"].write(calls), TOOLS).calls, calls)


def test_a_function_tag_with_json_may_follow_one_with_parameters() -> None:
    calls = [Call("read_file", {"path": "a"})]
    text = f"{WRITERS['qwen3-coder'].write(calls)}\n{WRITERS['functionary-v3.1'].write(calls)}"
    assert_same(read(text, TOOLS).calls, calls * 2)


@settings(max_examples=1500)
@given(SOUP | mutants(), st.booleans())
def test_no_text_breaks_the_reader_and_no_call_is_invented(raw: str, truncated: bool) -> None:
    read_safely(raw, truncated=truncated)
