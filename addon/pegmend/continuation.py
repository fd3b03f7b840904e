"""What of a turn a client has already, and what has to follow.

The deltas of a failed stream are what the engine's lenient parser made of the text while it came; its final parse may
consume less. They are therefore compared with the whole text, and never trusted to be a part of it.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pegmend.errors import Incomplete
from pegmend.rawoutput import SEPARATORS, answer_of, escaped_controls, find_tag, members_of, quoted
from pegmend.turn import ToolCall, Turn

# A string as it is, or white space.
_OUTSIDE_STRINGS = re.compile(r'(?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+")|[ \t\r\n]++', re.DOTALL)

Read = Callable[[str], Turn]
"""Reads a raw text. Raises a TurnError."""


@dataclass(slots=True)
class SentCall:
    """A call as far as it was sent."""

    name: str = ""
    arguments: str = ""
    id: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are a whole JSON object, and the model's: the engine sends {} for any that are none."""
        arguments = _lenient_json(self.arguments)
        return isinstance(arguments, dict) and bool(arguments)


@dataclass(slots=True)
class SentChoice:
    """What the client has of one choice. `is_finished` says that its end was sent too: nothing may follow."""

    has_role: bool = False
    content: str = ""
    reasoning: str = ""
    calls: list[SentCall] = field(default_factory=list)
    is_finished: bool = False


@dataclass(frozen=True, slots=True)
class Rest:
    """What the client lacks: the rest of the last call's arguments, further calls, words, thoughts."""

    arguments: str = ""
    calls: tuple[ToolCall, ...] = ()
    content: str = ""
    reasoning: str = ""
    truncated: bool = False


def rest_of_text(sent: SentChoice, raw: str, read: Read) -> Rest:
    """Return what of the turn in `raw`, a whole raw output, the client lacks; nothing of a choice that is finished.

    Raises Incomplete where what was sent is not the beginning of this turn, so that the text must come from another run
    of the model; and what `read` raises.
    """
    if sent.is_finished:
        return Rest()
    turn = read(raw)
    reasoning_left = _left(sent.reasoning, turn.reasoning)
    content_left = _content_left(sent, raw, turn, read)
    begun = turn.calls[: len(sent.calls)]
    arguments_left = [_arguments_left(one, call) for one, call in zip(sent.calls, begun, strict=False)]
    if (
        reasoning_left is None
        or content_left is None
        or len(begun) < len(sent.calls)
        or None in arguments_left
        or any(arguments_left[:-1])
    ):
        raise Incomplete(
            "The engine's second run does not begin with what the first one had sent already, so that the rest of the "
            "turn is unknown. Ask again.",
            raw_output=raw,
            calls=turn.calls,
        )
    return Rest(
        arguments=arguments_left[-1] or "" if arguments_left else "",
        calls=turn.calls[len(sent.calls) :],
        content=content_left,
        reasoning=reasoning_left,
        truncated=turn.truncated,
    )


def rest_of_remainder(sent: SentChoice, remainder: str, read: Read) -> Rest | None:
    """Return what the client lacks where the engine's log holds what came after the parsed part of the text.

    None where the two do not make up the whole turn for certain, as `can_follow` says, or where the remainder may begin
    in thoughts. Raises what `read` raises.
    """
    if not sent.calls or find_tag(remainder):
        return None
    turn = read(remainder)
    if not can_follow(sent, turn):
        return None
    return Rest(calls=turn.calls, content=turn.content.lstrip(SEPARATORS))


def can_follow(sent: SentChoice, turn: Turn) -> bool:
    """Whether the turn at the end of a text can stand behind what was sent, with no call broken and none twice.

    It cannot where a call is not whole, for its last characters came in one token with what the parser refuses; nor
    where the first call was sent already, since the parser takes back calls that do not fit in the end.
    """
    if not all(call.is_whole for call in sent.calls):
        return False
    if not turn.calls:
        return True
    first = turn.calls[0]
    arguments = _lenient_json(first.arguments)
    return not any(call.name == first.name and _lenient_json(call.arguments) == arguments for call in sent.calls)


def _content_left(sent: SentChoice, raw: str, turn: Turn, read: Read) -> str | None:
    """Return what of the content was not sent, None where other words were sent."""
    if not sent.content:
        return turn.content
    # What was sent can hold the beginning of what is no content in the end, so that the model's text comes first.
    # Thoughts are part of it where they were sent as content.
    answer_left = _left(sent.content, answer_of(raw))
    if answer_left is None:
        answer_left = _left(sent.content, raw)
    if answer_left is not None and not turn.calls:
        return answer_left
    if answer_left is not None and (rest := read(answer_left)).calls == turn.calls:
        return rest.content
    return _left(sent.content, turn.content)


def _left(sent: str, whole: str) -> str | None:
    """Return what of a text was not sent, None where the sent is not its beginning; white space may differ."""
    if whole.startswith(sent):
        return whole[len(sent) :]
    words = sent.strip()
    text = whole.lstrip()
    if not text.startswith(words):
        return None
    left = text[len(words) :]
    return left.lstrip() if sent[-1:].isspace() else left


def _arguments_left(sent: SentCall, call: ToolCall) -> str | None:
    """Return what of a call's arguments was not sent, None where another call was sent."""
    if sent.name != call.name:
        return None
    # The engine sends control characters in strings as they are; a call of ours has them escaped.
    written = escaped_controls(sent.arguments)
    for spelling in _spellings(call.arguments):
        if spelling.startswith(written):
            return spelling[len(written) :]
    return None


def _spellings(arguments: str) -> Iterator[str]:
    """Yield the ways in which the engine may have sent arguments.

    As the model wrote them; where the format is no JSON, the engine writes it without white space, and the values as
    they are or without it too.
    """
    yield arguments
    yield "{" + ",".join(f"{quoted(key)}:{value}" for key, value in members_of(arguments)) + "}"
    yield _OUTSIDE_STRINGS.sub(lambda part: part["string"] or "", arguments)


def _lenient_json(text: str) -> object:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
