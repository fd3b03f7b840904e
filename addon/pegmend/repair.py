"""From the engine's answer to a raw replay to what the client gets."""

from dataclasses import dataclass

from pegmend import errors
from pegmend.dialects import openai_chat
from pegmend.dialects.openai_chat import ChatRequest, RawCompletion
from pegmend.errors import TurnError


@dataclass(frozen=True, slots=True)
class Repair:
    """The response in place of the failure.

    `outcome` is "repaired" or "error" with the error's `code`, `calls` the names of the delivered calls in order,
    `raw_output` the model's text for each choice.
    """

    status: int
    body: bytes
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


def from_replay(request: ChatRequest, answer: bytes) -> Repair:
    """Return the response that the raw replay's answer proves: the turns, or the documented error.

    Raises BadCompletion where the answer is no chat completion.
    """
    completion = RawCompletion.parse(answer)
    try:
        turns = openai_chat.read_turns(request, completion)
    except TurnError as error:
        return documented_error(error, evidence="replay", raw_output=completion.texts)
    return Repair(
        status=200,
        body=openai_chat.completion_body(completion, turns),
        outcome="repaired",
        evidence="replay",
        calls=tuple(call.name for turn in turns for call in turn.calls),
        raw_output=completion.texts,
    )


def documented_error(error: TurnError, *, evidence: str = "", raw_output: tuple[str, ...] = ()) -> Repair:
    """Return the response that tells the client of an error."""
    return Repair(
        status=errors.STATUS,
        body=openai_chat.error_body(error),
        outcome="error",
        evidence=evidence,
        code=error.code,
        raw_output=raw_output,
    )
