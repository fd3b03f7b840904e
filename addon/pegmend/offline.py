"""Reads capture files and says what the repair makes of the turns in them, without any engine."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mitmproxy import http
from mitmproxy.exceptions import FlowReadException
from mitmproxy.io import FlowReader

from pegmend import repair
from pegmend.dialects.openai_chat import BadCompletion, ChatRequest
from pegmend.failure import find_failure
from pegmend.record import record_of, restore_original
from pegmend.upstreams import is_chat_path


class UnreadableCapture(Exception):
    """A file that is no flow file, or whose end is damaged; the message says which and why."""


@dataclass(frozen=True, slots=True)
class ReviewedTurn:
    """One chat completion of a capture.

    `engine` is what the engine answered, `result` what the client gets now. `is_repaired` is None where there was
    nothing to repair.
    """

    path: str
    engine: str
    result: str
    is_repaired: bool | None


def review(file: Path) -> Iterator[ReviewedTurn]:
    """Yield the turns of a capture file in order. Raises UnreadableCapture where it cannot be read (any further)."""
    count = 0
    try:
        with file.open("rb") as stream:
            for flow in FlowReader(stream).stream():
                count += 1
                if isinstance(flow, http.HTTPFlow) and is_chat_path(flow.request.path):
                    yield _review_flow(flow)
    except OSError as error:
        raise UnreadableCapture(f"{file}: {error.strerror}") from error
    except (FlowReadException, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        where = f"after flow {count}"
        raise UnreadableCapture(f"{file}: damaged {where}, or no flow file of mitmproxy: {error}") from error


def _review_flow(flow: http.HTTPFlow) -> ReviewedTurn:
    restore_original(flow)
    response = flow.response
    if response is None:
        return ReviewedTurn(flow.request.path, f"no response ({flow.error})", "", None)
    failure = find_failure(response.status_code, response.get_content(strict=False) or b"")
    if failure is None:
        return ReviewedTurn(flow.request.path, str(response.status_code), "as it is", None)
    engine = f"{response.status_code} {failure.format}"
    try:
        repaired = _repair(flow)
    except BadCompletion as error:
        return ReviewedTurn(flow.request.path, engine, f"unrepaired: {error}", False)
    result = f"{repaired.outcome}: {', '.join(repaired.calls) or repaired.code or 'plain answer'}"
    return ReviewedTurn(flow.request.path, engine, result, repaired.outcome == "repaired")


def _repair(flow: http.HTTPFlow) -> repair.Repair:
    recorded: bytes | None = record_of(flow).get("replay_body")
    if recorded is None:
        raise BadCompletion("the capture holds no raw output")
    request = ChatRequest.parse(flow.request.content or b"")
    if request is None:
        raise BadCompletion("the request is not a JSON object")
    return repair.from_replay(request, recorded)
