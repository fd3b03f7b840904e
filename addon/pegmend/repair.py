"""The one decision: from the evidence of a failed turn to what the client gets.

Evidence, best first; the first that proves the whole turn wins:

full        the engine's log holds the whole text (debug verbosity)
stream+log  the first calls went out as deltas, the log holds what came after them
replay      the engine's second run, which has to begin with what was sent and to end with what was logged

The log has no token counts, and does not tell whether the engine cut the text. Where that matters and a second run is
allowed, it decides. What none of them proves is a documented error.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pegmend import errors
from pegmend.continuation import Rest, can_follow, rest_of_remainder, rest_of_text
from pegmend.dialects import openai_chat
from pegmend.dialects.openai_chat import ChatRequest, RawCompletion
from pegmend.dialects.openai_stream import SentStream, error_event, rest_events
from pegmend.enginelog import FailureEntry
from pegmend.errors import Incomplete, RawOutputUnavailable, TurnError
from pegmend.turn import Turn

Replay = Callable[[], Awaitable[bytes]]
"""Returns the body of the answer to the raw replay."""


@dataclass(frozen=True, slots=True)
class FailedTurn:
    """What is known of a failed turn.

    `sent` is what was streamed, None where the client did not ask for a stream. `is_streaming` says that the response
    has begun, so that an error can only be an event. `entry` is what the engine logged, `deliver_incomplete` hands out
    calls from it even where nothing proves that they are all.
    """

    request: ChatRequest
    sent: SentStream | None = None
    is_streaming: bool = False
    entry: FailureEntry | None = None
    deliver_incomplete: bool = False


@dataclass(frozen=True, slots=True)
class Repair:
    """The response in place of the failure: a whole body, or (`is_events`) the events that complete a stream.

    `outcome` is "repaired", "incomplete" or "error" with the error's `code`; `calls` are the names of the turn's calls
    in order, `raw_output` the model's text for each choice as far as it is known.
    """

    status: int
    body: bytes
    is_events: bool
    outcome: str
    evidence: str = ""
    calls: tuple[str, ...] = ()
    code: str = ""
    raw_output: tuple[str, ...] = ()

    @property
    def header(self) -> str:
        """The value of the response header `x-pegmend`."""
        parts = [self.outcome]
        if self.evidence:
            parts.append(f"evidence={self.evidence}")
        parts.append(f"calls={len(self.calls)}")
        if self.code:
            parts.append(f"code={self.code}")
        return "; ".join(parts)


async def recover(failed: FailedTurn, replay: Replay | None) -> Repair:
    """Return what the client gets. `replay` is None where a second run is not allowed.

    Raises what `replay` raises, and BadCompletion where its answer is no chat completion.
    """
    # Reading a text of megabytes takes seconds, in which other connections want to be served.
    by_log = await asyncio.to_thread(_by_log, failed, may_replay=replay is not None)
    if isinstance(by_log, Repair):
        return by_log
    if replay is None:
        return await asyncio.to_thread(_without_replay, failed, by_log)
    return await asyncio.to_thread(_by_replay, failed, await replay())


def _by_log(failed: FailedTurn, *, may_replay: bool) -> Repair | TurnError | None:
    """Return the repair that the log proves; otherwise why not, if the log says so much.

    An error is not the last word where a second run is allowed: the engine may have cut the text.
    """
    entry, request = failed.entry, failed.request
    if entry is None or request.choice_count != 1:
        return None
    try:
        if may_replay and not _log_tells_all(failed, entry):
            return None
        if entry.full is not None:
            return _from_texts(failed, RawCompletion.of_text(request, entry.full), "full")
        if failed.sent is not None:
            rest = rest_of_remainder(failed.sent.choice(0), entry.remainder, request.read)
            if rest is not None:
                completion = RawCompletion.of_text(request, entry.remainder)
                return _events(failed.request, failed.sent, completion, [rest], "repaired", "stream+log")
    except TurnError as error:
        return error
    return None


def _log_tells_all(failed: FailedTurn, entry: FailureEntry) -> bool:
    """Whether a second run would add nothing to what the log proves. Raises a TurnError.

    A whole completion holds token counts. Words at the end may be cut by limits that no request shows: the engine's
    --predict, the context. Calls are not, for a part of one is none.
    """
    request = failed.request
    if failed.sent is None or request.wants_usage or request.may_be_cut:
        return False
    return not request.read(entry.remainder).content


def _by_replay(failed: FailedTurn, answer: bytes) -> Repair:
    completion = RawCompletion.parse(answer)
    try:
        _check_against_log(failed.entry, completion)
        return _from_texts(failed, completion, "replay")
    except TurnError as error:
        return _error(failed, error, "replay", completion.texts)


def _check_against_log(entry: FailureEntry | None, completion: RawCompletion) -> None:
    """Raise where the engine logged another end of the text than its second run has."""
    if entry is None or len(completion.texts) != 1:
        return
    (text,) = completion.texts
    if not entry.ends(text):
        raise Incomplete(
            "The engine's second run differs from what it logged of the first one, so that the turn is unknown. Ask "
            "again, or set a seed.",
            raw_output=text,
        )


def _without_replay(failed: FailedTurn, problem: TurnError | None) -> Repair:
    """Answer where only the log is left."""
    if problem is not None:
        return _error(failed, problem, "log", ())
    if failed.entry is None:
        return _error(
            failed,
            RawOutputUnavailable(
                "The engine could not parse the model's output, its log is not at hand, and the option pegmend_replay, "
                "which asks the engine again, is off. Switch it on."
            ),
            "",
            (),
        )
    try:
        turn = failed.request.read(failed.entry.remainder)
    except TurnError as error:
        return _error(failed, error, "log", ())
    if failed.deliver_incomplete and (incomplete := _incomplete(failed, failed.entry, turn)):
        return incomplete
    message = (
        "These are the calls at the end of the model's output; whether others came before them is unknown. Switch "
        "pegmend_replay on, or take them all the same with pegmend_incomplete=deliver, which delivers them unless a "
        "stream has begun what may be one of them."
    )
    return _error(failed, Incomplete(message, raw_output=failed.entry.remainder, calls=turn.calls), "log", ())


def _incomplete(failed: FailedTurn, entry: FailureEntry, turn: Turn) -> Repair | None:
    """Return the response with the calls that are known; None where a stream has begun what may be one of them."""
    if not turn.calls:
        return None
    completion = RawCompletion.of_text(failed.request, entry.remainder)
    if failed.sent is None:
        return _whole(completion, [turn], "incomplete", "log")
    if failed.request.choice_count != 1 or not can_follow(failed.sent.choice(0), turn):
        return None
    rest = Rest(calls=turn.calls, content=turn.content)
    return _events(failed.request, failed.sent, completion, [rest], "incomplete", "log")


def _from_texts(failed: FailedTurn, completion: RawCompletion, evidence: str) -> Repair:
    """Return the repair that whole texts prove, one for each choice. Raises a TurnError where they do not."""
    turns = openai_chat.read_turns(failed.request, completion)
    if failed.sent is None:
        return _whole(completion, turns, "repaired", evidence)
    rests = [
        rest_of_text(failed.sent.choice(index), text, partial(failed.request.read, truncated=turn.truncated))
        for index, (text, turn) in enumerate(zip(completion.texts, turns, strict=True))
    ]
    return _events(failed.request, failed.sent, completion, rests, "repaired", evidence)


def _whole(completion: RawCompletion, turns: Sequence[Turn], outcome: str, evidence: str) -> Repair:
    names = tuple(call.name for turn in turns for call in turn.calls)
    body = openai_chat.completion_body(completion, turns)
    return Repair(200, body, False, outcome, evidence, names, raw_output=completion.texts)


def _events(
    request: ChatRequest,
    sent: SentStream,
    completion: RawCompletion,
    rests: Sequence[Rest],
    outcome: str,
    evidence: str,
) -> Repair:
    sent.head = sent.head or completion.chunk_head
    usage = completion.body.get("usage") if request.wants_usage else None
    names = []
    for index, rest in enumerate(rests):
        names += [call.name for call in sent.choice(index).calls]
        names += [call.name for call in rest.calls]
    body = rest_events(sent, rests, usage)
    return Repair(200, body, True, outcome, evidence, tuple(names), raw_output=completion.texts)


def _error(failed: FailedTurn, error: TurnError, evidence: str, raw_output: tuple[str, ...]) -> Repair:
    body = error_event(error) if failed.is_streaming else openai_chat.error_body(error)
    return Repair(errors.STATUS, body, failed.is_streaming, "error", evidence, code=error.code, raw_output=raw_output)
