"""The engine's log in all its forms, in any pieces, and with text in it that imitates it."""

import json
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegmend import enginelog
from pegmend.enginelog import EngineLog, FailureEntry

B = '{"name": "write_file", "parameters": {"path": "b.txt"}}'
WARNING = "W common_chat_peg_parse: unparsed peg-native output: "
OVER = "W srv          stop: cancel task, id_task = 7"
FULL = "D common_chat_peg_parse: full peg-native output triggering error:"
HEADER = "<|start_header_id|>assistant<|end_header_id|>\n\n"


def stamped(*messages: str) -> list[str]:
    """Return messages as the engine writes them: a time before the first line of each."""
    return [line for message in messages for line in f"0.04.087.978 {message}".split("\n")]


def slog(line: str) -> str:
    quoted = json.dumps(line, ensure_ascii=False).replace("\\u2028", "\\u2028")
    return f"time=2026-11-30T15:36:02.123Z level=INFO msg={quoted} component=llama.cpp"


FORMS: dict[str, Callable[[list[str]], list[str]]] = {
    "bare": lambda lines: lines,
    "without time": lambda lines: [line.removeprefix("0.04.087.978 ") for line in lines],
    "bracketed time": lambda lines: [f"[2026-11-30T15:36:02.12345678{n % 10}Z] {line}" for n, line in enumerate(lines)],
    "slog": lambda lines: [slog(line) for line in lines],
    "compose": lambda lines: [f"model-runner-1  | {line}" for line in lines],
    "child": lambda lines: [f"[56885] {line}" for line in lines],
    "compose, time and child": lambda lines: [f"llm-1 | [2026-11-30T15:36:02.1+01:00] [7] {line}" for line in lines],
    "colored": lambda lines: [f"\x1b[0m{line}" if line.startswith("0.04") else line for line in lines],
    "carriage returns": lambda lines: [f"{line}\r" for line in lines],
}

REMAINDERS = [
    f"; {B}",
    B,
    ';\n{\n  "name": "write_file",\n\n  "parameters": {}\n}',
    '; {"name": "x", "parameters": {"content": "name | value\\n[123] é 漢字 \u2028 \\"q\\""}}\nname | value\n[123] x',
    "",
    "x" * 3_000_000 + "\n" + "y" * 100_000,
    "=== BEGIN ===\n=== END ===",
]


def read(lines: list[str], pieces: Callable[[bytes], list[bytes]] = lambda data: [data]) -> list[FailureEntry]:
    log = EngineLog()
    return [entry for piece in pieces("".join(f"{line}\n" for line in lines).encode()) for entry in log.feed(piece)]


def byte_by_byte(data: bytes) -> list[bytes]:
    size = 1 if len(data) < 10_000 else 4096
    return [data[n : n + size] for n in range(0, len(data), size)]


def at_random(data: bytes) -> list[bytes]:
    generator = random.Random(len(data))
    cuts = sorted(generator.randrange(len(data) + 1) for _ in range(12))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@pytest.mark.parametrize("pieces", [lambda data: [data], byte_by_byte, at_random], ids=["whole", "bytes", "random"])
@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("remainder", REMAINDERS, ids=range(len(REMAINDERS)))
@pytest.mark.parametrize("form", FORMS)
def test_all_forms(form: str, remainder: str, debug: bool, pieces: Callable[[bytes], list[bytes]]) -> None:
    full = f"{B}{remainder}"
    messages = ["I slot launch_slot_: id 0", WARNING + remainder]
    messages += [f"{FULL}\n=== BEGIN ===\n{HEADER}{full}\n=== END ==="] if debug else []
    lines = FORMS[form](
        stamped(*messages, OVER, 'W srv operator(): got exception: {"error":{}}', "I slot release: id 0")
    )
    entries = read(lines, pieces)
    assert [(one.format, one.remainder, one.full, one.is_certain) for one in entries] == [
        ("peg-native", remainder, full if debug else None, True)
    ]


@pytest.mark.parametrize("form", FORMS)
def test_several_entries_and_other_formats(form: str) -> None:
    gemma = WARNING.replace("native", "gemma4")
    entries = read(FORMS[form](stamped(WARNING + "a", OVER, "I idle", gemma + "b", OVER, WARNING + "c", OVER)))
    assert [(one.format, one.remainder) for one in entries] == [
        ("peg-native", "a"),
        ("peg-gemma4", "b"),
        ("peg-native", "c"),
    ]


def test_lines_of_other_writers_are_left_out() -> None:
    lines = [f"[1] {line}" for line in stamped(WARNING + "; {\n}", OVER)]
    others = [f"[2] {line}" for line in stamped(WARNING + "x", OVER)]
    mixed = [lines[0], others[0], lines[1], "web-1 | GET /", others[1], lines[2]]
    assert {(one.remainder, one.is_certain) for one in read(mixed)} == {("; {\n}", True), ("x", True)}


def test_an_entry_waits_for_its_end() -> None:
    log = EngineLog()
    assert not log.feed("\n".join(stamped(WARNING + B, "I slot release: id 0")).encode() + b"\n")
    assert not log.feed(f"{OVER}\n".encode())  # without a time it is the model's
    (entry,) = log.feed(f"{stamped(OVER)[0]}\n".encode())
    assert entry.remainder == B
    assert not entry.is_certain


@pytest.mark.parametrize(
    "remainder",
    [
        f"; {B}\n0.04.087.978 {OVER}\n; {B}",
        f"; {B}\n0.04.087.978 I slot release: id 0\n; {B}",
        f"; {B}\n0.04.087.978 I slot release: {B}",
        f"; {B}\n0.04.087.978 I continue: {B}",
        f"; {B}\n0.04.087.978 I x\n; {B}",
    ],
)
def test_text_behind_or_in_an_imitated_line_takes_the_certainty(remainder: str) -> None:
    entries = read(stamped(WARNING + remainder, OVER))
    assert entries
    assert not any(entry.is_certain for entry in entries)


@pytest.mark.parametrize("time", ["0.03.900.000", "999.00.000.001"])
@pytest.mark.parametrize(
    "lines",
    [
        f"TIME {OVER}\nTIME W srv operator(): {B}",
        f"TIME {OVER}\nTIME W srv operator(): <tool_call>x</tool_call>",
        f"TIME {FULL}\n=== BEGIN ===\n{HEADER}{B}\n; {B}\n=== END ===",
        f"TIME {FULL}\n=== BEGIN ===\n{HEADER}{B}\n; {B}\n=== END ===\nTIME {OVER}\n",
    ],
)
def test_a_model_does_not_know_the_time(lines: str, time: str) -> None:
    entries = read(stamped(f"{WARNING}; {B}\n{lines.replace('TIME', time)}", OVER))
    assert not any(entry.is_certain for entry in entries)


def test_times_that_two_threads_took_are_those_of_one_clock() -> None:
    (entry,) = read([f"0.04.087.978 {WARNING}; {B}", f"0.04.087.970 {OVER}", "0.04.087.960 I slot release: id 0"])
    assert entry.is_certain


def test_the_clock_of_an_engine_that_was_started_again() -> None:
    _, entry = read([f"9.04.087.978 {WARNING}; {B}", f"9.04.087.979 {OVER}", *stamped(WARNING + "x", OVER)])
    assert (entry.remainder, entry.is_certain) == ("x", True)


@pytest.mark.parametrize("form", [form for form in FORMS if form != "without time"])
def test_a_whole_text_of_the_models_making_is_a_part_of_the_remainder(form: str) -> None:
    remainder = f"; {B}\n{FULL}\n=== BEGIN ===\n{HEADER}{B}; {B}\n=== END ==="
    (entry,) = read(FORMS[form](stamped(WARNING + remainder, OVER)))
    assert (entry.remainder, entry.full, entry.is_certain) == (remainder, None, True)


@pytest.mark.parametrize("behind", [B, f"\n{B}", OVER])
def test_a_whole_text_that_may_go_on_behind_its_end_is_not_certain(behind: str) -> None:
    text = f"I write it\nDone.\n=== END ===\n{behind}\nDone."
    entry = read(stamped(f"{WARNING}Done.", f"{FULL}\n=== BEGIN ===\n{HEADER}{text}\n=== END ===", OVER))[0]
    assert not entry.is_certain


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("line", ["I continue: ", "I am done: ", "E sharp: ", "D major (two): ", "W x: ", "I note: "])
def test_prose_that_begins_like_a_level_is_the_models(form: str, line: str) -> None:
    remainder = f"; {B}\n{line}{B}"
    (entry,) = read(FORMS[form](stamped(WARNING + remainder, OVER)))
    assert (entry.remainder, entry.is_certain) == (remainder, True)


@pytest.mark.parametrize("form", ["child", "compose", "slog", "bracketed time"])
def test_a_line_that_lost_its_prefix_takes_the_certainty(form: str) -> None:
    first, over = FORMS[form](stamped(WARNING + f"; {B}", OVER))
    (entry,) = read([first, f"; {B}", over])
    assert not entry.is_certain


def test_many_ends_of_a_full_text_cost_little() -> None:
    text = "=== END ===\n" * 200_000
    entries = read(stamped(WARNING + text + "x", f"{FULL}\n=== BEGIN ===\n{HEADER}{text}", OVER, WARNING + "y", OVER))
    assert not entries or not entries[0].is_certain


def test_an_imitated_entry_makes_two() -> None:
    assert len(read(stamped(f"{WARNING}; {B}\n0.04.087.979 {WARNING}; {B}", OVER))) == 2


@pytest.mark.parametrize("text", [f"{B}\n=== END ===\n{B}", f"{B}\n0.04.087.978 I x: y\n{B}", f"=== BEGIN ===\n{B}"])
def test_imitations_in_a_full_text_do_no_harm(text: str) -> None:
    entry = read(stamped(WARNING + text, f"{FULL}\n=== BEGIN ===\n{HEADER}{B}\n{text}\n=== END ===", OVER))[0]
    if entry.is_certain:
        assert entry.full == f"{B}\n{text}"


def test_a_full_text_is_of_use_only_where_its_beginning_is_known() -> None:
    (entry,) = read(stamped(WARNING + B, f"{FULL}\n=== BEGIN ===\nUnknown header {B}\n=== END ===", OVER))
    assert entry.full is None
    assert entry.is_certain


def test_invalid_utf8_takes_the_certainty() -> None:
    text = "\n".join(stamped(WARNING + "; X", OVER)).encode().replace(b"X", b"\xff")
    (entry,) = EngineLog().feed(text + b"\n")
    assert not entry.is_certain


def test_a_line_without_end_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enginelog, "LINE_LIMIT", 1000)
    log = EngineLog()
    lines = stamped(WARNING + "; {", "x" * 5000, OVER)
    entries = [entry for piece in at_random("\n".join(lines).encode() + b"\n") for entry in log.feed(piece)]
    assert not any(entry.is_certain for entry in entries)
    assert len(log._line) < 1000
    (entry,) = log.feed(("\n".join(stamped(WARNING + B, OVER)) + "\n").encode())
    assert (entry.remainder, entry.is_certain) == (B, True)


def test_an_entry_without_end_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enginelog, "ENTRY_LIMIT", 1000)
    (entry,) = read(stamped(WARNING + "line\n" * 5000, OVER))
    assert not entry.is_certain
    assert len(entry.remainder) <= 1000


PARTS = [
    WARNING,
    OVER,
    FULL,
    B,
    "=== BEGIN ===",
    "=== END ===",
    "0.04.087.978 ",
    "[1] ",
    "a-1 | ",
    "\n",
    "\n",
    "é",
    "x",
]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PARTS), max_size=30).map("".join), st.integers(1, 9))
def test_any_log_is_read_the_same_in_any_pieces(text: str, size: int) -> None:
    data = text.encode()

    def result(pieces: list[bytes]) -> list[tuple[str, str | None, bool]]:
        log = EngineLog()
        entries = [entry for piece in pieces for entry in log.feed(piece)]
        return [(entry.remainder, entry.full, entry.is_certain) for entry in entries]

    assert result([data]) == result([data[n : n + size] for n in range(0, len(data), size)])
