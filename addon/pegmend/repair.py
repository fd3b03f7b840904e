"""The one decision: from the evidence of a failed turn to what the client gets.

Evidence, best first; the first that proves the whole turn wins:

full        the engine's log holds the whole text (debug verbosity)
stream+log  the first calls went out as deltas, the log holds what came after them
replay      the engine's second run, which has to begin with what was sent and to end with what was logged

What none of them proves is a documented error.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pegmend import errors
from pegmend.continuation import Rest, rest_of_remainder, rest_of_text
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
    by_log = await asyncio.to_thread(_by_log, failed)
    if isinstance(by_log, Repair):
        return by_log
    if replay is None:
        return await asyncio.to_thread(_without_replay, failed, by_log)
    return await asyncio.to_thread(_by_replay, failed, await replay())


def _by_log(failed: FailedTurn) -> Repair | TurnError | None:
    """Return the repair that the log proves; otherwise why not, if the log says so much.

    An error is not the last word: the log does not tell whether the engine cut the text.
    """
    entry, sent = failed.entry, failed.sent
    if entry is None or failed.request.choice_count != 1:
        return None
    try:
        if entry.full is not None:
            completion = RawCompletion.of_text(failed.request, entry.full)
            return _from_texts(failed, completion, "full", with_usage=False)
        # The log knows no token counts, and not whether the engine cut the text: those come from the replay.
        if sent is not None and not failed.request.wants_usage and not failed.request.may_be_cut:
            rest = rest_of_remainder(sent.choice(0), entry.remainder, failed.request.read)
            if rest is not None:
                return _events(sent, [rest], "repaired", "stream+log", (entry.remainder,))
    except TurnError as error:
        return error
    return None


def _by_replay(failed: FailedTurn, answer: bytes) -> Repair:
    completion = RawCompletion.parse(answer)
    try:
        _check_against_log(failed.entry, completion)
        return _from_texts(failed, completion, "replay", with_usage=True)
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
    if failed.deliver_incomplete and turn.calls:
        return _incomplete(failed, turn)
    message = (
        "These are the calls at the end of the model's output; whether others came before them is unknown. Switch "
        "pegmend_replay on, or take them all the same with pegmend_incomplete=deliver."
    )
    return _error(failed, Incomplete(message, raw_output=failed.entry.remainder, calls=turn.calls), "log", ())


def _incomplete(failed: FailedTurn, turn: Turn) -> Repair:
    assert failed.entry is not None
    raw_output = (failed.entry.remainder,)
    if failed.sent is not None:
        rest = Rest(calls=turn.calls, content=turn.content)
        return _events(failed.sent, [rest], "incomplete", "log", raw_output)
    completion = RawCompletion.of_text(failed.request, failed.entry.remainder)
    return _whole(completion, [turn], "incomplete", "log")


def _from_texts(failed: FailedTurn, completion: RawCompletion, evidence: str, *, with_usage: bool) -> Repair:
    """Return the repair that whole texts prove, one for each choice. Raises a TurnError where they do not."""
    turns = openai_chat.read_turns(failed.request, completion)
    if failed.sent is None:
        return _whole(completion, turns, "repaired", evidence)
    rests = [
        rest_of_text(failed.sent.choice(index), text, partial(failed.request.read, truncated=turn.truncated))
        for index, (text, turn) in enumerate(zip(completion.texts, turns, strict=True))
    ]
    failed.sent.head = failed.sent.head or completion.chunk_head
    usage = completion.body.get("usage") if with_usage and failed.request.wants_usage else None
    return _events(failed.sent, rests, "repaired", evidence, completion.texts, usage)


def _whole(completion: RawCompletion, turns: Sequence[Turn], outcome: str, evidence: str) -> Repair:
    names = tuple(call.name for turn in turns for call in turn.calls)
    body = openai_chat.completion_body(completion, turns)
    return Repair(200, body, False, outcome, evidence, names, raw_output=completion.texts)


def _events(
    sent: SentStream,
    rests: Sequence[Rest],
    outcome: str,
    evidence: str,
    raw_output: tuple[str, ...],
    usage: object = None,
) -> Repair:
    names = []
    for index, rest in enumerate(rests):
        names += [call.name for call in sent.choice(index).calls]
        names += [call.name for call in rest.calls]
    body = rest_events(sent, rests, usage)
    return Repair(200, body, True, outcome, evidence, tuple(names), raw_output=raw_output)


def _error(failed: FailedTurn, error: TurnError, evidence: str, raw_output: tuple[str, ...]) -> Repair:
    body = error_event(error) if failed.is_streaming else openai_chat.error_body(error)
    return Repair(errors.STATUS, body, failed.is_streaming, "error", evidence, code=error.code, raw_output=raw_output)
