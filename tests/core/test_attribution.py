"""Which log entry is used for which request: the decision as a table, and the windows that it decides about."""

import time

import pytest

from pegmend.attribution import TIME_UNKNOWN, Case, Window, doubt_about
from pegmend.enginelog import FailureEntry
from pegmend.journal import OWED_SECONDS, Journal
from pegmend.rawoutput import read

ENTRY = FailureEntry("peg-native", '; {"name": "read", "parameters": {}}')
UNCERTAIN = FailureEntry("peg-native", ENTRY.remainder, is_certain=False)
OTHER_FORMAT = FailureEntry("peg-gemma4", ENTRY.remainder)
OTHER_TOOL = FailureEntry("peg-native", '; {"name": "delete", "parameters": {}}')
BROKEN = FailureEntry("peg-native", '; {"name": "read", "para')


@pytest.mark.parametrize(
    ("covered", "others", "unclaimed", "entries", "doubt"),
    [
        (True, 0, 0, [ENTRY], None),
        (True, 0, 0, [BROKEN], None),
        (False, 0, 0, [ENTRY], "the log was not followed all the time"),
        (True, 1, 0, [ENTRY], "another request was under way"),
        (True, 0, 1, [ENTRY], "an earlier failure may be logged only now"),
        (True, 0, 0, [], "nothing was logged"),
        (True, 0, 0, [ENTRY, ENTRY], "several failures were logged"),
        (True, 0, 0, [UNCERTAIN], "the entry may have lost text"),
        (True, 0, 0, [OTHER_FORMAT], "the entry is about another format"),
        (True, 0, 0, [OTHER_TOOL], "the entry calls a tool that the request does not declare"),
    ],
)
def test_doubts(covered: bool, others: int, unclaimed: int, entries: list[FailureEntry], doubt: str | None) -> None:
    window = Window(covered, others, unclaimed, entries, time_fits=True)
    assert doubt_about(Case(window, "peg-native", lambda text: read(text, {"read": {}}))) == doubt


def test_a_failure_that_names_no_format_fits_any() -> None:
    window = Window(True, 0, 0, [OTHER_FORMAT], time_fits=True)
    assert doubt_about(Case(window, "unnamed", lambda text: read(text, {"read": {}}))) is None


@pytest.mark.parametrize("needs_time", [True, False])
def test_the_time_has_to_fit_where_there_is_other_evidence(needs_time: bool) -> None:
    case = Case(Window(True, 0, 0, [ENTRY]), "peg-native", lambda text: read(text, {"read": {}}), needs_time)
    assert doubt_about(case) == (TIME_UNKNOWN if needs_time else None)


@pytest.mark.parametrize(("stamp", "fits"), [(12.0, True), (12.05, True), (11.8, False), (13.0, False), (None, False)])
def test_times_are_compared_on_the_engines_clock(stamp: float | None, fits: bool) -> None:
    log = journal()
    log.begin("a", 100)
    log.fail("a", 101)
    log.calibrate("a", FailureEntry("peg-native", "x", stamp=1.0))
    log.end("a", 102)
    log.begin("b", 111.5)
    log.fail("b", 112)
    log.log(FailureEntry("peg-native", "x", stamp=stamp), 112.1)
    assert log.window("b").time_fits is fits


def journal(covered_since: float | None = 0) -> Journal:
    return Journal(covered_since)


def test_a_window_holds_the_entries_since_the_request_began() -> None:
    log = journal()
    log.log(OTHER_TOOL, 1)
    log.begin("a", 2)
    log.log(ENTRY, 3)
    assert log.window("a") == Window(True, 0, 0, [ENTRY])


@pytest.mark.parametrize(("covered_since", "is_covered"), [(None, False), (1.0, True), (3.0, False)])
def test_the_log_has_to_be_followed_from_the_beginning(covered_since: float | None, is_covered: bool) -> None:
    log = journal(covered_since)
    log.begin("a", 2)
    assert log.window("a").is_covered is is_covered


def test_requests_at_the_same_time_are_others() -> None:
    log = journal()
    log.begin("before", 1)
    log.end("before", 2)
    log.begin("ends within", 2)
    log.begin("a", 3)
    log.end("ends within", 4)
    assert log.window("a").others == 1
    log.begin("goes on", 5)
    assert log.window("a").others == 2
    assert log.window("goes on").others == 1


def test_an_entry_that_never_came_is_owed_for_a_while() -> None:
    log = journal()
    log.begin("a", 1)
    log.fail("a", 2)
    log.end("a", 3)
    log.begin("b", 4)
    assert log.window("b").unclaimed == 1
    log.end("b", 5)
    log.begin("c", 3 + OWED_SECONDS)
    assert log.window("c").unclaimed == 0


def test_an_entry_that_came_is_not_owed() -> None:
    log = journal()
    log.begin("a", 1)
    log.fail("a", 2)
    log.log(ENTRY, 2)
    log.claim("a")
    log.end("a", 3)
    log.begin("b", 4)
    assert log.window("b") == Window(True, 0, 0, [])


def test_an_entry_from_before_the_failure_is_anothers() -> None:
    log = journal()
    log.begin("a", 1)
    log.log(OTHER_TOOL, 2)
    log.fail("a", 5)
    log.log(ENTRY, 5.2)
    assert log.window("a").entries == [ENTRY]


def test_entries_are_not_kept_where_no_request_is_under_way() -> None:
    log = journal()
    for number in range(1000):
        log.log(ENTRY, number)
    assert not log._entries
    log.begin("a", 1000)
    for number in range(1000):
        log.log(ENTRY, 1000 + number)
    assert len(log._entries) < 100


def test_little_is_remembered() -> None:
    log = journal()
    for number in range(10_000):
        log.begin(str(number), number)
        log.fail(str(number), number)
        log.log(ENTRY, number)
        log.end(str(number), number + 0.5)
    assert len(log._requests) < 20
    assert len(log._entries) < 20


def test_a_request_that_hangs_lets_little_be_remembered() -> None:
    log = journal()
    log.begin("hangs", 0)
    for number in range(1, 10_000):
        log.begin(str(number), number)
        log.fail(str(number), number)
        log.log(ENTRY, number)
        log.claim(str(number))
        log.end(str(number), number + 0.5)
    assert len(log._requests) < 1000
    assert len(log._entries) < 100
    assert log.window("hangs").others > 0
    assert not log.window("hangs").unclaimed


def test_what_is_forgotten_still_counts() -> None:
    log = journal()
    log.begin("hangs", 0)
    log.begin("fails", 0)
    log.begin("a", 0.5)
    log.fail("fails", 1)
    log.end("fails", 1)
    for number in range(1000):
        log.begin(str(number), 2 + number / 1000)
        log.end(str(number), 2 + number / 1000)
    assert "fails" not in log._requests
    log.end("hangs", 3)
    assert log.window("a").others > 1000 / 10
    assert log.window("a").unclaimed == 1
    log.begin("b", 4)
    assert log.window("b") == Window(True, 1, 1, [])
    log.begin("c", 1 + OWED_SECONDS + 0.1)
    assert log.window("c").unclaimed == 0


def test_a_request_that_is_sent_again_owes_what_it_owed() -> None:
    log = journal()
    log.begin("a", 1)
    log.fail("a", 2)
    log.begin("a", 3)
    assert log.window("a").unclaimed == 1
    log.end("a", 4)
    assert log.knows("a")
    log.begin("b", 30)
    log.end("b", 31)
    assert not log.knows("a")


def test_the_end_of_a_request_takes_constant_time_while_another_hangs() -> None:
    log = journal()
    log.begin("hangs", 0)
    started = time.perf_counter()
    for number in range(100_000):
        log.begin(str(number), number)
        log.end(str(number), number)
    assert time.perf_counter() - started < 5
