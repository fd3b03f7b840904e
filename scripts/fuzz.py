"""Looks for texts that the reader of raw outputs fails at, for as long as it is told.

Random calls in every format, mutated texts and markers in any order are read, and what the tests of the reader assert
has to hold (see tests/families.py). The first text for which it does not is made as small as possible and printed.
Besides, parts of calls are repeated at every place of a call, up to a megabyte: reading twice the text may take twice
the time. Where it takes more, the text is printed with the line that the time is spent in, and the search goes on.

usage: python scripts/fuzz.py [SECONDS] [--seed N]

Exits with 1 where anything was found.
"""

from __future__ import annotations

import argparse
import random
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "addon")]

from hypothesis import HealthCheck, Phase, given, seed, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from tests.families import (  # noqa: E402
    MARKERS,
    MAY_LACK_THE_LAST_TAG,
    PIECES,
    PROSE,
    SOUP,
    THOUGHT_TAGS,
    TOOLS,
    WRITERS,
    Call,
    Document,
    check_beginning,
    check_round_trip,
    check_thoughts,
    documents,
    mixtures,
    mutants,
    read_safely,
)

from pegmend.errors import TurnError  # noqa: E402
from pegmend.rawoutput import read  # noqa: E402
from pegmend.rawoutput.families import FAMILIES  # noqa: E402
from pegmend.rawoutput.family import Family  # noqa: E402

EXAMPLES = 300
"""Texts for each property in a round."""

FIRST_LENGTH = 4_000
LAST_LENGTH = 1_000_000
FLOOR = 0.05
"""Seconds below which no time is compared with another."""

SUSPECT = 0.015
"""Seconds for twice the first length, above which longer texts are tried as well."""

RATIO = 3.0
"""What the time for twice the text may not exceed."""

GIVE_UP = 5.0


# What always holds

SETTINGS = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
THOUGHTS = st.lists(documents().map(lambda one: one.text) | SOUP | mutants(), min_size=1, max_size=3).map("\n".join)
CUT_SAFELY = sorted(WRITERS.keys() - MAY_LACK_THE_LAST_TAG)

latest: list[str] = []
"""The text that was read last, which is the smallest one when a property has failed."""


def any_text(raw: str, truncated: bool) -> None:
    latest[:] = [f"read({raw!r}, TOOLS, truncated={truncated})"]
    read_safely(raw, truncated=truncated)


def round_trip(document: Document) -> None:
    latest[:] = [f"read({document.text!r}, TOOLS)", f"of {document.formats}: {document.calls!r}"]
    check_round_trip(document)


def beginnings(document: Document, data: st.DataObject, truncated: bool) -> None:
    for end in data.draw(st.lists(st.integers(0, len(document.text)), min_size=1, max_size=6)):
        latest[:] = [f"read({document.text[:end]!r}, TOOLS, truncated={truncated})", f"the whole: {document.text!r}"]
        check_beginning(document.text, end, truncated=truncated)


def thoughts(tags: tuple[str, str], thought: str, answer: str) -> None:
    latest[:] = [f"read({tags[0] + thought + tags[1] + answer!r}, TOOLS)"]
    check_thoughts(tags[0], thought, tags[1], answer)


PROPERTIES: list[tuple[Callable[..., None], tuple[st.SearchStrategy[Any], ...]]] = [
    (any_text, (mutants(), st.booleans())),
    (any_text, (SOUP, st.booleans())),
    (any_text, (st.lists(SOUP | mutants(), min_size=2, max_size=3).map("\n".join), st.booleans())),
    (round_trip, (documents(),)),
    (round_trip, (mixtures(),)),
    (beginnings, (documents(), st.data(), st.just(True))),
    (beginnings, (documents(CUT_SAFELY), st.data(), st.just(False))),
    (thoughts, (st.sampled_from(THOUGHT_TAGS), THOUGHTS, PROSE)),
]


def violation(number: int) -> str | None:
    """Try every property on texts of their own and return the first failure."""
    for index, (check, strategies) in enumerate(PROPERTIES):
        test = seed(number * len(PROPERTIES) + index)(SETTINGS(given(*strategies)(check)))
        try:
            test()
        except Exception as failure:
            reason = "".join(traceback.format_exception_only(failure)).partition("\nFailing test case")[0]
            return "\n".join([f"{check.__name__}: {reason.strip()}", *latest])
    return None


# Time


@dataclass(frozen=True)
class Growing:
    """A text with a part that is repeated."""

    before: str
    part: str
    after: str

    def of(self, length: int) -> str:
        """Return the text in about this length."""
        return self.before + self.part * (length // len(self.part)) + self.after

    def __str__(self) -> str:
        return f"{self.before!r} + {self.part!r} * n + {self.after!r}"


class _TakesTooLong(Exception):
    pass


def _stop(number: int, frame: FrameType | None) -> None:
    raise _TakesTooLong


def processor_time(run: Callable[[], object]) -> float:
    """Return the processor time that something takes; at most GIVE_UP."""
    signal.setitimer(signal.ITIMER_VIRTUAL, GIVE_UP)
    started = time.process_time()
    try:
        run()
    except (TurnError, _TakesTooLong):
        pass
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.process_time() - started


def seconds(text: str) -> float:
    """Return the processor time that it takes to read a text."""
    return processor_time(lambda: read(text, TOOLS))


def place(text: str, limit: float) -> str:
    """Return the line of the reader that is run after this time."""
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        read(text, TOOLS)
    except _TakesTooLong as stopped:
        frames = [frame for frame in traceback.extract_tb(stopped.__traceback__) if "pegmend" in frame.filename]
        frames = [frame for frame in frames if Path(frame.filename).name != "cursor.py"]
        where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno} {frames[-1].line}"
        return where + (f" ({slowest_opening(text)})" if frames[-1].name == "between" else "")
    except TurnError:
        pass
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return "?"


def slowest_opening(text: str) -> str:
    """Return the family whose opening it takes longest to look for."""

    def cost(family: Family) -> float:
        opening = re.compile(family.opening, re.VERBOSE)
        return processor_time(lambda: opening.findall(text))

    return max(FAMILIES, key=cost).name


def slowness(growing: Growing, *, thorough: bool) -> tuple[str, str] | None:
    """Return where time is spent that grows faster than the text, and how it grows."""
    length = FIRST_LENGTH
    previous = seconds(growing.of(length))
    while length < LAST_LENGTH and previous < GIVE_UP:
        length *= 2
        text = growing.of(length)
        now = seconds(text)
        if now > FLOOR and now > RATIO * previous:
            # The machine may have been busy with something else.
            now = min(now, seconds(text))
            previous = max(previous, seconds(growing.of(length // 2)))
            if now > FLOOR and now > RATIO * previous:
                line = place(text, min(now, GIVE_UP) / 2)
                return line, f"{growing}: {previous:.3f} s for {length // 2:,} characters, {now:.3f} s for {length:,}"
        if not thorough and now < SUSPECT * length / (2 * FIRST_LENGTH):
            return None
        previous = now
    return None


_TOKEN = re.compile(r"<[^<>\s]*[ >]|\w+|\s+|.", re.DOTALL)
CALLS = [Call("read_file", {"path": "a", "limit": 1}), Call("search", {"tags": ["b"]})]
REPEATED = [
    " ",
    "\n",
    "\t \n",
    "a",
    "a ",
    "{",
    "[",
    '{"a":',
    '[{"name":"x"},',
    '"',
    "\\",
    "\\n",
    "<",
    "<|",
    "</",
    "-",
    "1",
]
REPEATED += [
    f"{opening}{inside}{closing}" for opening, closing in THOUGHT_TAGS for inside in ("x", "'", "<function=x>")
]
REPEATED += ["`<think>`", "`</think>`", "<think>`</think>`", '<think>{"x":"</think>', "[time()]", "time()\n"]
REPEATED += [
    "\n<parameter=path>\n",
    "\n<parameter=x>\nb",
    "</parameter>\n",
    "x\n\n",
    '{"name": "time", "arguments": {}} x ',
]
REPEATED += [writer.write([call]) for writer in WRITERS.values() for call in (Call("time", {}), CALLS[0])]
REPEATED += [f"x {text}\n" for text in REPEATED]
PARTS = [*REPEATED, *MARKERS, *PIECES]


def contexts() -> list[tuple[str, str]]:
    """Return calls of every format, parted at every place between tokens."""
    parted = {("", ""), ("x", ""), ("x ", " x"), ("", "to=x<|channel|>y"), ("x\n", "x {")}
    for writer in WRITERS.values():
        text = writer.write(CALLS)
        for token in _TOKEN.finditer(text):
            parted |= {
                (text[: token.end()], ""),
                (text[: token.end()], "x"),
                (text[: token.end()], text[token.end() :]),
            }
    return sorted(parted)


def growing_texts(chance: random.Random) -> Iterator[tuple[Growing, bool]]:
    """Yield texts without end, and whether to try them at full length: first white space everywhere."""
    everywhere = contexts()
    places = [(before, part, after) for before, after in everywhere for part in (" ", "\n")]
    alone = [
        (before, part, after)
        for part in PARTS
        for before, after in (("", ""), ("x ", ""), ("x ", " x"), ("x {} [1] ", "\nx"))
    ]
    chance.shuffle(places)
    chance.shuffle(alone)
    for index, place_ in enumerate(places):
        yield Growing(*place_), False
        if index % 20 == 0 and alone:
            yield Growing(*alone.pop()), True
    for place_ in alone:
        yield Growing(*place_), True
    while True:
        before, after = chance.choice(everywhere)
        part = "".join(chance.choices(PARTS, k=chance.choice([1, 1, 1, 2, 3])))
        yield Growing(before, part, after), chance.random() < 0.05


def main() -> int:
    parser = argparse.ArgumentParser(description="Look for texts that the reader fails at.")
    parser.add_argument("seconds", nargs="?", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    signal.signal(signal.SIGVTALRM, _stop)
    end = time.monotonic() + options.seconds
    slow: dict[str, str] = {}
    texts = growing_texts(random.Random(options.seed))
    rounds = measured = 0
    while time.monotonic() < end:
        if found := violation(options.seed * 1_000_000 + rounds):
            print(found)
            return 1
        rounds += 1
        pause = time.monotonic() + 10
        while time.monotonic() < min(pause, end):
            growing, thorough = next(texts)
            measured += 1
            if (one := slowness(growing, thorough=thorough)) and one[0] not in slow:
                slow[one[0]] = one[1]
                print(f"super-linear at {one[0]}\n    {one[1]}", flush=True)
    print(f"{rounds} rounds of {EXAMPLES * len(PROPERTIES)} texts, {measured} growing texts, {len(slow)} slow places")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
