"""What a flow's metadata says about pegmend: how the response was, what the replay said, what was done.

It stands under the key "pegmend" in the metadata of a flow and goes into flow files. Only strings without lone
surrogates, bytes, numbers, lists and dictionaries may stand in it: mitmproxy cannot write a flow otherwise.
"""

from http import HTTPStatus
from typing import Any

from mitmproxy import http

KEY = "pegmend"


def record_of(flow: http.HTTPFlow) -> dict[str, Any]:
    """Return the record of a flow, to read or to add to."""
    record: dict[str, Any] = flow.metadata.setdefault(KEY, {})
    return record


def forget_record(flow: http.HTTPFlow) -> None:
    """Drop the record of an earlier run: a flow that is sent again begins anew."""
    flow.metadata.pop(KEY, None)


def outcome_of(flow: http.HTTPFlow) -> str | None:
    """Return what pegmend made of a failure: repaired, error, failed; None where there was no failure."""
    outcome: str | None = flow.metadata.get(KEY, {}).get("outcome")
    return outcome


def keep_original(flow: http.HTTPFlow) -> None:
    """Note the engine's own response before it is replaced."""
    assert flow.response is not None
    record_of(flow).update(original_status=flow.response.status_code, original_body=flow.response.content or b"")


def restore_original(flow: http.HTTPFlow) -> None:
    """Put the engine's own response back into a recorded flow that was repaired."""
    record = flow.metadata.get(KEY, {})
    if flow.response is not None and "original_body" in record:
        set_response(flow.response, record["original_status"], record["original_body"])


def set_response(response: http.Response, status: int, body: bytes) -> None:
    """Give a response another status and a JSON body, and the headers that go with them."""
    response.status_code = status
    response.reason = HTTPStatus(status).phrase if status in HTTPStatus else ""
    for name in ("content-encoding", "transfer-encoding"):
        response.headers.pop(name, None)
    response.headers["content-type"] = "application/json; charset=utf-8"
    response.content = body
