"""What counts as a call in plain JSON, as a table."""

import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegmend.errors import Ambiguous, TurnError, Undeclared, Unparseable
from pegmend.rawoutput import read
from pegmend.rawoutput.jsonscan import MAX_DEPTH

TOOLS: dict[str, dict[str, object]] = {"read": {}, "time": {}}
A = '{"name": "read", "parameters": {"path": "a"}}'
B = '{"name": "time", "parameters": {}}'
A_CALL = ("read", '{"path": "a"}')
B_CALL = ("time", "{}")
BOTH = [A_CALL, B_CALL]


@pytest.mark.parametrize(
    ("raw", "calls", "content"),
    [
        (A, [A_CALL], ""),
        *((f"{A}{separator}{B}", BOTH, "") for separator in ("", ";", "; ", ",", ", ", "\n", " ; \r\n\t", " ;; ")),
        (f"[{A},{B}]", BOTH, ""),
        (f"[ {A} , {B} ]", BOTH, ""),
        (f"[{A}\n{B}]", BOTH, ""),
        (f"[{A}", [A_CALL], ""),
        (f"[{A}, {B},", BOTH, ""),
        (f"{A}]", [A_CALL], ""),
        (f"{A};", [A_CALL], ""),
        (f"{A}; {A}", [A_CALL, A_CALL], ""),
        # prose
        (f"First {A} then {B} done.", BOTH, "First\nthen\ndone."),
        (f"It's {{fine}} [1] \"so {A}", [A_CALL], "It's {fine} [1] \"so"),
        (f"{A}\n{{broken}} braces", [A_CALL], "{broken} braces"),
        (f'{A}\nAnswer: {{"ok": true}}', [A_CALL], 'Answer: {"ok": true}'),
        # fences, lists, tokens
        (f"```json\n{A}\n```", [A_CALL], ""),
        (f"```json\n{A}\n{B}\n```", BOTH, ""),
        (f"Here:\n```json\n{A}\n```\nand\n```\n{B}\n```", BOTH, "Here:\nand"),
        (f"{A}\n```py\nx = 1\n```", [A_CALL], "```py\nx = 1\n```"),
        (f"`{A}` `{B}`", BOTH, ""),
        (f"1. {A}\n2. {B}", BOTH, ""),
        (f"1) {A}\n\n10) {B}", BOTH, ""),
        (f"- {A}\n- {B}\n", BOTH, ""),
        (f"* {A}\n• {B} ok", BOTH, "ok"),
        (f"Version 2. {A}", [A_CALL], "Version 2."),
        (f"<|python_tag|>{A}<|eom_id|>", [A_CALL], ""),
        # markers around JSON, by family
        (f"Both:\n<tool_call>\n{A}\n</tool_call>\n<tool_call>\n{B}\n</tool_call>", BOTH, "Both:"),
        (f"<tool_call>{A}</tool_call><tool_call>{B}", BOTH, ""),
        (f"<tool_calls>[{A}, {B}]</tool_calls>", BOTH, ""),
        (f"<tool_calls>\n{A}\n{B}\n</tool_calls>", BOTH, ""),
        (f"<TOOLCALL>[{A}, {B}]</TOOLCALL>", BOTH, ""),
        (f"<|tool_call|> [{A},{B}]", BOTH, ""),
        (f"<function_call> {A}\n<function_call> {B}", BOTH, ""),
        (f"<longcat_tool_call>{A}</longcat_tool_call>\n<longcat_tool_call>{B}</longcat_tool_call>", BOTH, ""),
        (f"<|function_call|>{A}", [A_CALL], ""),
        (f"Now<|action_start|><|plugin|>\n{A}<|action_end|>\n", [A_CALL], "Now"),
        (f" functools[{A}, {B}]", BOTH, ""),
        (f"[TOOL_CALLS] [{A}, {B}]", BOTH, ""),
        (f"[TOOL_CALLS][{A}][/TOOL_CALLS] Done.", [A_CALL], "Done."),
        # keys
        ('{"name": "read", "arguments": {"path": "a"}}', [A_CALL], ""),
        ('{"arguments": {"path": "a"}, "name": "read"}', [A_CALL], ""),
        ('{"type": "function", "name": "read", "parameters": {"path": "a"}}', [A_CALL], ""),
        ('{"id": "x", "type": "function", "function": {"name": "read", "arguments": {"path": "a"}}}', [A_CALL], ""),
        ('[{"type": "function", "function": {"arguments": "{}", "name": "time"}}]', [B_CALL], ""),
        ('{"function": "read", "parameters": {"path": "a"}}', [A_CALL], ""),
        ('{"n\\u0061me": "r\\u0065ad", "parameters": {"path": "a"}}', [A_CALL], ""),
        ('{"name": "read", "thought": "x", "parameters": {"path": "a"}}', [A_CALL], ""),
        # arguments
        ('{"name": "read", "arguments": "{\\"path\\": \\"a\\"}"}', [A_CALL], ""),
        ('{"name": "time", "arguments": ""}', [B_CALL], ""),
        ('{"name": "time", "arguments": null}', [B_CALL], ""),
        ('{"name": "time"}', [B_CALL], ""),
        ('{"name": "time", "type": "function", "id": "1"}', [B_CALL], ""),
        ('{"name": "read", "parameters": { "b":1,"a" : [ ] }}', [("read", '{ "b":1,"a" : [ ] }')], ""),
        ('{"name": "read", "parameters": {"x": "a\nb\tc", \n"y": 1}}', [("read", '{"x": "a\\nb\\tc", \n"y": 1}')], ""),
        ('{"name": "read", "parameters": {"é": "\\u00e9漢😀"}}', [("read", '{"é": "\\u00e9漢😀"}')], ""),
        (
            '{"name": "read", "parameters": {"x": "}; {\\"name\\": \\"time\\"} ```"}}',
            [("read", '{"x": "}; {\\"name\\": \\"time\\"} ```"}')],
            "",
        ),
        (f'{{"name": "read", "parameters": {A}}}', [("read", A)], ""),
        # no calls
        ("Hello.", [], "Hello."),
        ("  Hello.\n", [], "  Hello.\n"),
        ("", [], ""),
        ('{"name": "Rex"}', [], '{"name": "Rex"}'),
        ('[{"name": "Rex"}, 1]', [], '[{"name": "Rex"}, 1]'),
        ('{"name": "Rex"} is {"na', [], '{"name": "Rex"} is {"na'),
        ("int main() { return x[0]; }", [], "int main() { return x[0]; }"),
        ('{"tool": "read"}', [], '{"tool": "read"}'),
        ('{"parameters": {"path": "b"}}', [], '{"parameters": {"path": "b"}}'),
        ('{"x": {"properties": 1}}', [], '{"x": {"properties": 1}}'),
        (f"I will call read. {A}", [A_CALL], "I will call read."),
        # other formats beside JSON
        (f"{A}\n[TOOL_CALLS]time[ARGS]{{}}", BOTH, ""),
        (f"<tool_call>{A}</tool_call><tool_call>time</tool_call>", BOTH, ""),
        (f"{A}\n[time()]", BOTH, ""),
        (f'{{"name": "read", "parameters": {{"properties": {A}}}}}', [("read", f'{{"properties": {A}}}')], ""),
        ('{"answer": tru', [], '{"answer": tru'),
        ("read the file named {name: x}", [], "read the file named {name: x}"),
        ("To read {x}, call read(x) or time().", [], "To read {x}, call read(x) or time()."),
        ("proofread\n{x}", [], "proofread\n{x}"),
    ],
)
def test_reading(raw: str, calls: list[tuple[str, str]], content: str) -> None:
    turn = read(raw, TOOLS)
    assert [(call.name, call.arguments) for call in turn.calls] == calls
    assert turn.content == content


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        # broken objects among calls
        (f'{A}; {{"name": "time", "parameters": {{"x": "say "hi""}}}}', Unparseable),
        (f'{{"name": "read", "parameters": {{"path": "a}}; {B}', Unparseable),
        (f"{A}; {{", Unparseable),
        (f'{A}; {{"na', Unparseable),
        (f'{A}; {{"name": "time", "parameters": {{"x": tru', Unparseable),
        (f'[{A}, {{"name": "time", "parameters": {{"x": 1]', Unparseable),
        (f'{A}; {{"name" "time"}}', Unparseable),
        # a broken call alone
        ('{"name": "read", "parameters": {"path": "a}', Unparseable),
        ('{"name": "read", "parameters": {"path": True}}', Unparseable),
        ('{"name": "read", "parameters": {"n": 01}}', Unparseable),
        ('{"name": "read", "parameters": {"path": "\\x"}}', Unparseable),
        ('{"name": "read", parameters: {}}', Unparseable),
        ('{"name": "rea', Unparseable),
        (f'{{"tool_calls": [{A}, {B}]', Unparseable),
        (f'{{"tool_calls": [{A}, {{"name": "time", "para', Unparseable),
        (f'{{"x": {{"y": {A}, "z": ?', Unparseable),
        ('{"x": {"name": "read", ?', Unparseable),
        ("{'name': 'read', 'parameters': {}}", Unparseable),
        ('{name: "read", parameters: {}}', Unparseable),
        (f"{A}; {{'name': 'time', 'parameters': {{}}}}", Unparseable),
        # arguments that are no object
        ('{"name": "read", "parameters": [1]}', Unparseable),
        ('{"name": "read", "parameters": "a"}', Unparseable),
        ('{"name": "read", "parameters": "[]"}', Unparseable),
        ('{"name": "read", "parameters": 1}', Unparseable),
        ('{"name": "read", "arguments": "{\\"a\\": NaN}"}', Unparseable),
        ('{"name": "read", "parameters": "{\\"x\\": \\"\\ud83d\\"}"}', Unparseable),
        # undeclared
        ('{"name": "delete", "parameters": {}}', Undeclared),
        (f'{A}; {{"name": "delete", "parameters": {{}}}}', Undeclared),
        (f'{A}; {{"name": "delete"}}', Undeclared),
        # two readings
        (f'{{"calls": [{A}]}}', Ambiguous),
        (f'{{"x": {{"parameters": {A}}}}}', Ambiguous),
        (f"[[{A}]]", Ambiguous),
        (f"[{A}, 1]", Ambiguous),
        (f'[{A}, {{"name": "Rex"}}]', Ambiguous),
        ('{"name": "read", "path": "a"}', Ambiguous),
        ('{"name": "read", "parameters": {}, "arguments": {}}', Ambiguous),
        ('{"name": "read", "name": "time", "parameters": {}}', Ambiguous),
        ('{"function": {"name": "read"}, "arguments": {}}', Ambiguous),
        ('{"tool": "read", "args": {}}', Ambiguous),
        ('{"name": "read", "args": {}}', Ambiguous),
        (f'{A}; {{"tool": "time"}}', Ambiguous),
        (f'{A}; {{"parameters": {{"path": "b"}}}}', Ambiguous),
        (f'{{"name": "read", "parameters": {{"path": "a"}}, "next": {B}}}', Ambiguous),
        (f'{{"name": "read", "parameters": {{"path": "a"}}, "next": [{B}]}}', Ambiguous),
        (f'{{"name": "read", "parameters": {{}}, "function": {B}}}', Ambiguous),
        (f'{{"type": "function", "function": {A}, "then": {B}}}', Ambiguous),
        ('{"name": "read", "parameters": {}, "input": {"path": "a"}}', Ambiguous),
        (f'["x", {A}]', Ambiguous),
        (f"[1, {A}, 2]", Ambiguous),
        # definitions of tools
        ('{"name": "read", "parameters": {"type": "object", "properties": {"path": {}}}}', Ambiguous),
        ('{"function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}', Ambiguous),
        # what is left of other formats
        ('<|python_tag|>brave_search.call(query="x")', Undeclared),
        ("<|python_tag|>print(1)", Unparseable),
        ('<|open|>tools<|sep|><|open|>call tool="read" index="1"<|sep|>{', Unparseable),
        ('<|plamo:begin_tool_name|>read{"path": 1}', Unparseable),
        ('read(path="{a}")', Unparseable),
        ("Action: read", Unparseable),
        ('{"read": {"path": "a"}}; {"time": {}}', Unparseable),
        (f"{A}\ntime()", Unparseable),
        (f'{A}; read({{"path": "b"}})', Unparseable),
        (f'{A}\n{{"time": {{}}}}', Unparseable),
        (f'{A}\n{{"action": "time", "action_input": {{}}}}', Ambiguous),
        (f'{A}\n{{"Name": "time", "Args": {{}}}}', Unparseable),
        (f"{A}\n{{'tool': 'time', 'args': {{}}}}", Unparseable),
        (f'{A}\n{{// c\n"name": "time", "parameters": {{}}}}', Unparseable),
        (f'{A}\n{{\\"name\\": \\"time\\"}}', Unparseable),
        (f'{A}\n"name": "time", "parameters": {{}}}}', Unparseable),
    ],
)
def test_what_cannot_be_decided_is_an_error(raw: str, error: type[TurnError]) -> None:
    with pytest.raises(error) as caught:
        read(raw, TOOLS)
    assert caught.value.raw_output == raw


@pytest.mark.parametrize(
    ("raw", "calls", "content"),
    [
        (f'{A}; {{"name": "time", "parame', [A_CALL], ""),
        (f"{A}; {{", [A_CALL], ""),
        (f"Now {A}; and", [A_CALL], "Now\nand"),
        (f'[{A}, {{"name": "time", "parameters": {{"x": "abc', [A_CALL], ""),
        ('{"name": "read", "para', [], '{"name": "read", "para'),
    ],
)
def test_truncated_output_has_its_complete_calls(raw: str, calls: list[tuple[str, str]], content: str) -> None:
    turn = read(raw, TOOLS, truncated=True)
    assert [(call.name, call.arguments) for call in turn.calls] == calls
    assert turn.content == content
    assert turn.truncated


def test_a_broken_call_in_the_middle_of_truncated_output_is_an_error() -> None:
    with pytest.raises(Unparseable):
        read(f'{{"name": "read", "parameters": {{x}}}}; {A}', TOOLS, truncated=True)


@pytest.mark.parametrize(
    ("raw", "calls", "reasoning", "content"),
    [
        (f"<think>maybe {A}</think>\n\n{B}", [B_CALL], f"maybe {A}", ""),
        (f"\n<think>{A}", [], A, ""),
        (f"<think>a</think>\n<think>maybe {A}</think>\nHello {{x}}", [], f"amaybe {A}", "Hello {x}"),
        (f"Sure.\n<think>maybe {A}</think>\n{B}", [B_CALL], f"maybe {A}", "Sure."),
        (f"[THINK]{A}[/THINK]{B}", [B_CALL], A, ""),
        ("<think></think>Hi", [], "", "Hi"),
        (
            f'{A}; {{"name": "read", "parameters": {{"path": "</think>"}}}}',
            [A_CALL, ("read", '{"path": "</think>"}')],
            "",
            "",
        ),
    ],
)
def test_calls_in_reasoning_are_none(raw: str, calls: list[tuple[str, str]], reasoning: str, content: str) -> None:
    turn = read(raw, TOOLS)
    assert [(call.name, call.arguments) for call in turn.calls] == calls
    assert (turn.reasoning, turn.content) == (reasoning, content)


def test_without_tools_everything_is_text() -> None:
    assert read(A, {}).content == A


def test_a_tool_may_have_any_name() -> None:
    turn = read('{"name": "a.b|(c", "parameters": {}}{x: [.]}', {"a.b|(c": {}, "": {}})
    assert [call.name for call in turn.calls] == ["a.b|(c"]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
CALLS = st.lists(
    st.tuples(st.sampled_from(sorted(TOOLS)), st.dictionaries(st.text(), JSON_VALUES, max_size=4)),
    min_size=1,
    max_size=5,
)


@given(CALLS, st.sampled_from(["; ", ";", ", ", "\n", "", "\nand then\n"]), st.booleans(), st.sampled_from([None, 2]))
def test_any_calls_come_back_as_they_were_written(calls, separator, ascii_only, indent) -> None:  # type: ignore[no-untyped-def]
    written = [json.dumps(arguments, ensure_ascii=ascii_only, indent=indent) for _, arguments in calls]
    raw = separator.join(
        f'{{"name": "{name}", "parameters": {arguments}}}' for (name, _), arguments in zip(calls, written, strict=True)
    )
    turn = read(raw, TOOLS)
    assert [(call.name, call.arguments) for call in turn.calls] == [
        (name, arguments) for (name, _), arguments in zip(calls, written, strict=True)
    ]


PIECES = [
    A,
    B,
    A[:20],
    B[9:],
    '{"',
    "{",
    "}",
    "[",
    "]",
    '"',
    "\\",
    ";",
    ",",
    ":",
    "\n",
    "```json\n",
    "```",
    "1. ",
    "null",
    "x",
]


@settings(max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=60), st.booleans())
def test_no_text_breaks_the_reader_and_no_call_is_invented(raw: str, truncated: bool) -> None:
    try:
        turn = read(raw, TOOLS, truncated=truncated)
    except TurnError:
        return
    for call in turn.calls:
        assert isinstance(json.loads(call.arguments), dict)
        assert call.name in raw
        assert call.arguments == "{}" or call.arguments in raw


@settings(max_examples=300)
@given(st.lists(st.sampled_from([A, B, "; ", "\n", "text ", '{"x": 1} ']), max_size=6).map("".join), st.data())
def test_the_beginning_of_a_text_holds_no_call_that_the_whole_does_not(raw: str, data: st.DataObject) -> None:
    whole = read(raw, TOOLS).calls
    prefix = raw[: data.draw(st.integers(0, len(raw)))]
    begun = read(prefix, TOOLS, truncated=True).calls
    assert whole[: len(begun)] == begun


LENGTH = 2_000_000
"""Characters; scripts/bench.py reads five times as many and says how long that takes."""


@pytest.mark.parametrize(
    "piece",
    [
        "{",
        "[",
        '{"',
        '{"a":',
        '{"a":{',
        '[{"name":"x"},',
        '{"name":"read","parameters":{',
        '"',
        "\\",
        "{x: ",
        "```",
        "1. ",
    ],
)
def test_megabytes_of_anything_are_read_without_harm(piece: str) -> None:
    text = (A + piece * (LENGTH // len(piece)))[:LENGTH]
    try:
        calls = read(text, TOOLS).calls
    except TurnError:
        return
    assert [(call.name, call.arguments) for call in calls] == [A_CALL]


def test_wrappers_in_wrappers_are_not_followed() -> None:
    text = '{"function":' * 990 + A + "}" * 990
    with pytest.raises(Ambiguous):
        read(text, TOOLS)


def test_depth_is_bounded() -> None:
    def nested(depth: int) -> str:
        return f'{{"name": "read", "parameters": {{"x": {"[" * depth}{"]" * depth}}}}}'

    assert read(nested(MAX_DEPTH - 2), TOOLS).calls
    with pytest.raises(Unparseable):
        read(nested(MAX_DEPTH - 1), TOOLS)


def test_the_scan_keeps_little() -> None:
    text = '{"a": {"b": [1, 2, {"c": "d"}]}} ' * 30_000
    tracemalloc.start()
    try:
        assert read(text, TOOLS).content == text
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
