"""What a model did in one turn: the calls, the words, the thoughts."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call.

    `arguments` is the text of a JSON object: the model's own text, spaces and order included, wherever that is valid
    JSON. `id` is the model's own id of the call, "" where its format has none.
    """

    name: str
    arguments: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """A whole turn, in the order in which the model wrote it.

    `content` is the prose around the calls ("" for none), `reasoning` what stood between think tags. `truncated` says
    that the engine cut the output, so that a last, unfinished call may be missing from `calls`.
    """

    calls: tuple[ToolCall, ...] = ()
    content: str = ""
    reasoning: str = ""
    truncated: bool = False
