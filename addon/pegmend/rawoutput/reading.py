"""The reading of a whole raw output, whatever its format."""

from collections.abc import Collection

from pegmend.errors import Ambiguous, Unparseable
from pegmend.rawoutput import foreign, jsoncalls
from pegmend.rawoutput.reasoning import split_reasoning
from pegmend.turn import Turn


def read(raw: str, tools: Collection[str], *, truncated: bool = False) -> Turn:
    """Return what the model did in `raw`.

    `raw` is the text as it was generated, `tools` the names that may be called; without any, the text is an answer.
    `truncated` says that the engine stopped the output (`finish_reason` "length"): an unfinished call at its end is
    then left out, otherwise it is an error.

    Raises a TurnError where a call cannot be read, is of an undeclared tool, or may be meant in two ways.
    """
    reasoning, answer = split_reasoning(raw)
    if not tools:
        return Turn(content=answer, reasoning=reasoning, truncated=truncated)
    turn = jsoncalls.read(answer, tools, truncated=truncated)
    if turn.calls and (thought := foreign.find_thought(turn.content)):
        message = f"Calls stand beside {thought!r}, so that some of them may only have been thought of."
        raise Ambiguous(message, raw_output=raw, calls=turn.calls)
    if sign := foreign.find_sign(turn.content, tools, beside_calls=bool(turn.calls)):
        message = (
            f"The model's output holds {sign!r}, which belongs to a tool call in a format that pegmend does not read. "
            "The text stands in raw_output."
        )
        raise Unparseable(message, raw_output=raw, calls=turn.calls)
    return Turn(turn.calls, turn.content, reasoning, truncated)
