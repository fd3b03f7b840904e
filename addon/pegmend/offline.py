"""Reads capture files and says what the repair makes of the turns in them, without any engine."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mitmproxy import http
from mitmproxy.exceptions import FlowReadException
from mitmproxy.io import FlowReader

from pegmend.dialects.openai_chat import BadCompletion, ChatRequest
from pegmend.dialects.openai_stream import NotAStream
from pegmend.gate import FailureGate
from pegmend.record import recorded_entry, recorded_replay, request_kinds, restore_original
from pegmend.recovery import failed_turn, failure_in
from pegmend.repair import Repair, recover
from pegmend.replay import ReplayFailed
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
    path, response = flow.request.path, flow.response
    kinds = request_kinds(flow)
    request = f" (request repaired: {', '.join(kinds)})" if kinds else ""
    if response is None:
        return ReviewedTurn(path, "no response", str(flow.error or ""), None)
    failure, gate = failure_in(response, response.get_content(strict=False) or b"")
    if failure is None:
        return ReviewedTurn(path, str(response.status_code), f"as it is{request}", None)
    engine = f"{response.status_code} {failure.format}"
    try:
        repaired = _repair(flow, gate)
    except (BadCompletion, NotAStream, ReplayFailed) as error:
        return ReviewedTurn(path, engine, f"unrepaired: {error}", False)
    result = f"{repaired.outcome}: {', '.join(repaired.calls) or repaired.code or 'plain answer'}{request}"
    return ReviewedTurn(path, engine, result, repaired.outcome == "repaired")


def _repair(flow: http.HTTPFlow, gate: FailureGate | None) -> Repair:
    request = ChatRequest.parse(flow.request.get_content(strict=False) or b"")
    if request is None:
        raise BadCompletion("the request is not a JSON object")
    failed = failed_turn(request, gate, recorded_entry(flow))
    return asyncio.run(recover(failed, recorded_replay(flow)))
