"""What a flow's metadata says about pegmend: how the response was, what the evidence said, what was done.

It stands under the key "pegmend" in the metadata of a flow and goes into flow files. Only strings without lone
surrogates, bytes, numbers, lists and dictionaries may stand in it: mitmproxy cannot write a flow otherwise.
"""

import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from mitmproxy import http

from pegmend.enginelog import FailureEntry
from pegmend.replay import ReplayFailed

KEY = "pegmend"
JSON = "application/json; charset=utf-8"
EVENTS = "text/event-stream"
MARKER = ":wrench:"
_NOTES_LIMIT = 100

logger = logging.getLogger(__name__)


def has_events(response: http.Response) -> bool:
    """Whether a response says that it is a stream of events."""
    content_type: str = response.headers.get("content-type", "")
    return content_type.startswith(EVENTS)


def is_whole_stream(response: http.Response) -> bool:
    """Whether a response is a stream of events with a known length, which may hold the failure."""
    return has_events(response) and "content-length" in response.headers


def path_of(flow: http.HTTPFlow) -> str:
    """Return the path of a request for a log: without its query, which may hold a secret."""
    return flow.request.path.partition("?")[0]


def record_of(flow: http.HTTPFlow) -> dict[str, Any]:
    """Return the record of a flow, to read or to add to."""
    record: dict[str, Any] = flow.metadata.setdefault(KEY, {})
    return record


def forget_record(flow: http.HTTPFlow) -> None:
    """Drop the record of an earlier run: a flow that is sent again begins anew."""
    flow.metadata.pop(KEY, None)


def outcome_of(flow: http.HTTPFlow) -> str | None:
    """Return what pegmend made of a failure: repaired, incomplete, error, failed; None where there was no failure."""
    outcome: str | None = flow.metadata.get(KEY, {}).get("outcome")
    return outcome


def keep_request(flow: http.HTTPFlow, original: bytes, kinds: list[str], notes: list[str]) -> None:
    """Note what was repaired in a request, and `original`, the client's own one; show it in mitmproxy and its log.

    Later repairs are noted beside the earlier ones: the client's own request is the first that is given.
    """
    record = record_of(flow)
    record.setdefault("original_request", original)
    record["request"] = [*request_kinds(flow), *kinds]
    record["request_notes"] = [*record.get("request_notes", []), *notes][:_NOTES_LIMIT]
    make_visible(flow, request_header(flow))
    logger.info("pegmend: %s request repaired: %s", path_of(flow), "; ".join(notes[:5]))


def request_kinds(flow: http.HTTPFlow) -> list[str]:
    """Return what was repaired in a request: bytes, arguments, mojibake, unfolded, ids."""
    kinds: list[str] = flow.metadata.get(KEY, {}).get("request", [])
    return kinds


def request_header(flow: http.HTTPFlow) -> str:
    """Return what the header x-pegmend says of a request that was repaired."""
    return f"request={','.join(request_kinds(flow))}"


def make_visible(flow: http.HTTPFlow, header: str) -> None:
    """Show in mitmproxy's lists what was done."""
    flow.marked = MARKER
    flow.comment = f"pegmend: {header}"


def keep_original(flow: http.HTTPFlow, body: bytes) -> None:
    """Note the engine's own response before it is replaced; `body` is decoded."""
    assert flow.response is not None
    record_of(flow).update(
        original_status=flow.response.status_code,
        original_type=flow.response.headers.get("content-type", ""),
        original_body=body,
    )


def restore_original(flow: http.HTTPFlow) -> None:
    """Put the engine's own response back into a recorded flow that was repaired."""
    record = flow.metadata.get(KEY, {})
    if flow.response is not None and "original_body" in record:
        set_response(flow.response, record["original_status"], record["original_body"], record["original_type"])


def keep_entry(flow: http.HTTPFlow, entry: FailureEntry) -> None:
    """Note what the engine logged."""
    record_of(flow).update(log_format=entry.format, log_remainder=entry.remainder, log_full=entry.full)


def recorded_entry(flow: http.HTTPFlow) -> FailureEntry | None:
    """Return the log entry of a recorded flow."""
    record = record_of(flow)
    if "log_remainder" not in record:
        return None
    return FailureEntry(record["log_format"], record["log_remainder"], record["log_full"])


def recorded_replay(flow: http.HTTPFlow) -> Callable[[], Awaitable[bytes]]:
    """Return a function that gives the recorded answer to the replay of a flow."""

    async def recorded() -> bytes:
        answer: bytes | None = record_of(flow).get("replay_body")
        if answer is None:
            raise ReplayFailed("the capture holds no raw output")
        return answer

    return recorded


def set_response(response: http.Response, status: int, body: bytes, content_type: str) -> None:
    """Give a response another status and body, and the headers that go with them."""
    if content_type.startswith(EVENTS) and _is_chunked_stream(response, status):
        response.data.content = body  # a recorded stream keeps its headers: no length, but its encoding in chunks
        return
    response.status_code = status
    response.reason = HTTPStatus(status).phrase if status in HTTPStatus else ""
    for name in ("content-encoding", "transfer-encoding"):
        response.headers.pop(name, None)
    response.headers["content-type"] = content_type
    response.content = body


def _is_chunked_stream(response: http.Response, status: int) -> bool:
    return has_events(response) and "transfer-encoding" in response.headers and response.status_code == status
