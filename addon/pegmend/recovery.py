"""Gives a failed turn back: recognises the failure, gets the raw text, answers with the calls that are in it."""

import asyncio
import logging
import time

from mitmproxy import ctx, http
from mitmproxy.connection import ConnectionState

from pegmend import repair
from pegmend.dialects.openai_chat import BadCompletion, ChatRequest
from pegmend.errors import RawOutputUnavailable
from pegmend.failure import find_failure, may_be_failure
from pegmend.options import is_chat
from pegmend.record import keep_original, record_of, restore_original, set_response
from pegmend.repair import Repair
from pegmend.replay import ReplayFailed, ReplayRequest, replay_headers, send_replay

HEADER = "x-pegmend"
MARKER = ":wrench:"

logger = logging.getLogger(__name__)


class Recovery:
    """Replaces the engine's refusal by the turn that the model made."""

    async def response(self, flow: http.HTTPFlow) -> None:
        """Repair a failed turn. Whatever goes wrong here, the client gets what the engine said."""
        if not is_chat(flow):
            return
        if not flow.live:
            restore_original(flow)
        if not _is_failure(flow):
            return
        started = time.monotonic()
        keep_original(flow)
        try:
            repaired = await _repair(flow)
        except (ReplayFailed, BadCompletion) as error:
            _fail_open(flow, str(error))
        except Exception as error:
            logger.exception("pegmend: an error of its own.")
            _fail_open(flow, f"{type(error).__name__} inside pegmend")
        else:
            _answer(flow, repaired, time.monotonic() - started)


def _is_failure(flow: http.HTTPFlow) -> bool:
    response = flow.response
    if response is None or not may_be_failure(response.status_code):
        return False
    body = response.get_content(strict=False)
    return body is not None and find_failure(response.status_code, body) is not None


async def _repair(flow: http.HTTPFlow) -> Repair:
    request = ChatRequest.parse(flow.request.content or b"")
    if request is None:
        raise ReplayFailed("the request is not a JSON object")
    try:
        answer = await _raw_answer(flow, request)
    except RawOutputUnavailable as error:
        return repair.documented_error(error)
    # Reading a text of megabytes takes seconds, in which other connections want to be served.
    return await asyncio.to_thread(repair.from_replay, request, answer)


async def _raw_answer(flow: http.HTTPFlow, request: ChatRequest) -> bytes:
    """Return the engine's answer to the raw replay; of a recorded flow, the recorded one."""
    record = record_of(flow)
    if not flow.live:
        recorded: bytes | None = record.get("replay_body")
        if recorded is None:
            raise ReplayFailed("the capture holds no raw output")
        return recorded
    if not ctx.options.pegmend_replay:
        raise RawOutputUnavailable(
            "The engine could not parse the model's output, and the option pegmend_replay, which asks for it again, is "
            "off. Switch it on."
        )
    answer = await send_replay(
        ReplayRequest(flow.request.url, replay_headers(flow.request.headers.items(multi=True)), request.raw_replay()),
        timeout_seconds=ctx.options.pegmend_replay_timeout_ms / 1000,
        client_is_gone=lambda: not flow.client_conn.state & ConnectionState.CAN_READ,
        verify_tls=flow.request.scheme == "https" and not ctx.options.ssl_insecure,
    )
    record["replay_body"] = answer
    return answer


def _answer(flow: http.HTTPFlow, repaired: Repair, seconds: float) -> None:
    assert flow.response is not None
    set_response(flow.response, repaired.status, repaired.body)
    if repaired.outcome == "error":
        flow.response.headers["x-should-retry"] = "false"
    record_of(flow).update(raw_output=list(repaired.raw_output), code=repaired.code)
    _show(flow, repaired.outcome, repaired.header)
    names = ", ".join(repaired.calls) or repaired.code or "no calls"
    logger.info("pegmend: %s %s (%s) in %.2f s", flow.request.path, repaired.header, names, seconds)


def _fail_open(flow: http.HTTPFlow, reason: str) -> None:
    reason = " ".join(reason.split())[:300]
    header = f"failed; reason={reason}".encode("ascii", "replace").decode()
    _show(flow, "failed", header)
    logger.warning("pegmend: %s is not repaired, the engine's answer goes on: %s", flow.request.path, reason)


def _show(flow: http.HTTPFlow, outcome: str, header: str) -> None:
    """Make the outcome visible in the response, the record and mitmproxy's lists."""
    assert flow.response is not None
    flow.response.headers[HEADER] = header
    record_of(flow).update(outcome=outcome, header=header)
    flow.marked = MARKER
    flow.comment = f"pegmend: {header}"
