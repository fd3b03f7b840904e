"""Gives a failed turn back: recognises the failure, gathers the evidence, answers with the calls that it proves."""

import asyncio
import logging
import re
import time

import orjson
from mitmproxy import ctx, http

from pegmend import completion, sse
from pegmend.adaptation import ADAPTATIONS, Adaptation, adapted
from pegmend.dialects.openai_chat import BadCompletion, ChatRequest, RawCompletion
from pegmend.dialects.openai_stream import NotAStream, SentStream
from pegmend.enginelog import FailureEntry
from pegmend.errors import TurnError
from pegmend.failure import Failure, find_failure
from pegmend.gate import FailureGate
from pegmend.logwatch import LogWatch
from pegmend.options import is_chat
from pegmend.outgoing import without_seed
from pegmend.record import (
    EVENTS,
    JSON,
    has_events,
    is_whole_stream,
    keep_entry,
    keep_original,
    keep_request,
    make_visible,
    path_of,
    record_of,
    recorded_entry,
    recorded_replay,
    request_header,
    request_kinds,
    restore_original,
    set_response,
)
from pegmend.repair import FailedTurn, Repair, Replay, recover
from pegmend.replay import Answer, ReplayFailed
from pegmend.resend import send_again
from pegmend.templates import refusal_in

HEADER = "x-pegmend"
PING_SECONDS = 5.0
_UNPRINTABLE = re.compile(r"[^ -~]")  # no such character may stand in a header

logger = logging.getLogger(__name__)


class Recovery:
    """Replaces the engine's refusal by the turn that the model made."""

    def __init__(self, log_watch: LogWatch, adaptation: Adaptation) -> None:
        self._log_watch = log_watch
        self._adaptation = adaptation
        self._running: dict[str, asyncio.Task[Repair | None]] = {}

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        """Put the gate into every stream of a chat, which may report the failure as an event."""
        if not flow.live or flow.response is None or not is_chat(flow):
            return
        if request_kinds(flow):
            flow.response.headers[HEADER] = request_header(flow)
        # A stream with a length is whole already, and must not grow: it is repaired as one piece.
        if _is_event_stream(flow.response) and not is_whole_stream(flow.response):
            flow.response.stream = FailureGate()

    async def response(self, flow: http.HTTPFlow) -> None:
        """Repair a failed turn that was not streamed, and any turn of a flow file."""
        self._stop(flow)
        if not is_chat(flow) or flow.response is None or flow.response.stream:
            return
        if flow.live:
            try:
                await self._answer_refusals(flow)
            except Exception:
                logger.exception("pegmend: the template's refusal goes on as it is.")
        else:
            restore_original(flow)
        body = flow.response.get_content(strict=False) or b""
        failure, gate = failure_in(flow.response, body)
        if failure is None:
            return
        keep_original(flow, body)
        repaired = await self._repair(flow, failure, gate)
        if gate is not None:
            tail = repaired.body if repaired else gate.held
            set_response(flow.response, 200, gate.content() + _visible(record_of(flow)["header"]) + tail, EVENTS)
            return
        flow.response.headers[HEADER] = record_of(flow)["header"]
        if repaired is not None:
            set_response(flow.response, repaired.status, repaired.body, EVENTS if repaired.is_events else JSON)
            if repaired.outcome == "error":
                flow.response.headers["x-should-retry"] = "false"

    async def _answer_refusals(self, flow: http.HTTPFlow) -> None:
        """Where the template refuses the history, send the request again with one that it takes.

        Histories are adapted beforehand once that is known, so that this happens only when the engine has shown another
        template so far. The answer is taken whole then, also that of a stream.
        """
        assert flow.response is not None
        for _ in ADAPTATIONS:
            kind = refusal_in(flow.response.status_code, flow.response.get_content(strict=False) or b"")
            request = ChatRequest.parse(flow.request.get_content(strict=False) or b"") if kind else None
            if kind is None or request is None or not self._adaptation.learn(kind, flow, request.body):
                return
            body = orjson.dumps({**request.body, "messages": adapted(request.body["messages"], [kind])})
            try:
                answer = await send_again(flow, body)
            except ReplayFailed as error:
                logger.warning("pegmend: %s: the adapted history got no answer: %s", path_of(flow), error)
                return
            keep_request(flow, _without_pinned_seed(flow), [kind], [f"messages: {kind}"])
            flow.request.content = body
            set_response(flow.response, answer.status, answer.body, answer.content_type)
            flow.response.headers[HEADER] = request_header(flow)

    async def response_tail(self, flow: http.HTTPFlow) -> None:
        """Repair a turn whose stream ended in the failure; while that takes time, comments keep the stream alive."""
        assert flow.response is not None
        gate = flow.response.stream
        assert isinstance(gate, FailureGate)
        assert gate.failure is not None
        task = self._running.pop(flow.id, None)
        if task is None:
            keep_original(flow, gate.content() + gate.held)
            task = asyncio.create_task(self._repair(flow, gate.failure, gate))
        done, _ = await asyncio.wait({task}, timeout=PING_SECONDS)
        if not done:
            self._running[flow.id] = task
            gate.ready.append(sse.comment("pegmend is recovering this turn"))
            gate.needs_tail = True
            return
        repaired = task.result()
        gate.ready.append(_visible(record_of(flow)["header"]))
        if repaired is not None:
            gate.held.clear()
            gate.ready.append(repaired.body)

    def error(self, flow: http.HTTPFlow) -> None:
        """Give up on a turn whose client went away."""
        self._stop(flow)

    def _stop(self, flow: http.HTTPFlow) -> None:
        """End the repair of a stream that is over: over HTTP/2 a client can leave it without any error in the flow."""
        if task := self._running.pop(flow.id, None):
            task.cancel()

    async def _repair(self, flow: http.HTTPFlow, failure: Failure, gate: FailureGate | None) -> Repair | None:
        """Return the repair, None where there is none; either is noted in the record, the comment and the log."""
        started = time.monotonic()
        record_of(flow)["format"] = failure.format
        try:
            request = ChatRequest.parse(flow.request.get_content(strict=False) or b"")
            if request is None:
                raise ReplayFailed("the request is not a JSON object")
            entry = await self._entry(flow, request, failure)
            deliver = ctx.options.pegmend_incomplete == "deliver"
            failed = failed_turn(request, gate, entry, deliver_incomplete=deliver)
            repaired = await recover(failed, _replay(flow, request))
        except (ReplayFailed, BadCompletion, NotAStream) as error:
            _give_up(flow, str(error))
            return None
        except Exception as error:
            logger.exception("pegmend: an error of its own.")
            _give_up(flow, f"{type(error).__name__} inside pegmend")
            return None
        if flow.live and repaired.evidence == "replay" and len(repaired.raw_output) == 1:
            self._log_watch.confirm(flow, repaired.raw_output[0])
        record_of(flow).update(raw_output=list(repaired.raw_output), code=repaired.code)
        _mark(flow, repaired.outcome, repaired.header)
        names = ", ".join(repaired.calls) or repaired.code or "no calls"
        seconds = time.monotonic() - started
        logger.info("pegmend: %s %s (%s) in %.2f s", path_of(flow), repaired.header, names, seconds)
        return repaired

    async def _entry(self, flow: http.HTTPFlow, request: ChatRequest, failure: Failure) -> FailureEntry | None:
        """Return the log entry that is this turn's for certain."""
        if not flow.live:
            return recorded_entry(flow)
        entry, doubt = await self._log_watch.entry_of(flow, request, failure)
        if entry is not None:
            keep_entry(flow, entry)
        record_of(flow)["log"] = doubt or "used"
        return entry


def failure_in(response: http.Response, body: bytes) -> tuple[Failure | None, FailureGate | None]:
    """Return the failure that a whole response reports; for a stream, also the gate as it is at its end."""
    if not _is_event_stream(response):
        return find_failure(response.status_code, body), None
    gate = FailureGate()
    gate(body)
    return gate.failure, gate


def failed_turn(
    request: ChatRequest, gate: FailureGate | None, entry: FailureEntry | None, *, deliver_incomplete: bool = False
) -> FailedTurn:
    """Return what is known of a turn, where `gate` holds what was streamed of it. Raises NotAStream."""
    if gate is not None and not gate.is_whole:
        raise NotAStream("the stream is too long to be kept")
    sent = SentStream.parse(gate.content() if gate else b"") if gate or request.is_stream else None
    return FailedTurn(request, sent, gate is not None, entry, deliver_incomplete)


def _is_event_stream(response: http.Response) -> bool:
    return response.status_code == 200 and has_events(response)


def _replay(flow: http.HTTPFlow, request: ChatRequest) -> Replay | None:
    """Return the function that asks the engine for the raw text, or has it from the capture; None where it may not."""
    record = record_of(flow)

    async def ask() -> bytes:
        record["replay_body"] = body = await _raw_completion(flow, request)
        return body

    if not flow.live:
        return recorded_replay(flow)
    return ask if ctx.options.pegmend_replay else None


async def _raw_completion(flow: http.HTTPFlow, request: ChatRequest) -> bytes:
    """Return the completion with the raw text. Raises ReplayFailed, and BadCompletion, where there is none."""
    replay = request.raw_replay()
    answer = await send_again(flow, replay)
    if find_failure(answer.status, answer.body) and request.choice_count == 1:
        return await _without_parser(flow, request)
    body = _body_of(answer)
    if not await asyncio.to_thread(_lacks_calls, request, RawCompletion.parse(body)):
        return body
    # A turn that failed and makes no call is a plain answer, or it has been parsed.
    listed = _body_of(await send_again(flow, completion.token_request(replay)))
    return completion.with_whole_texts(listed, request.stops)


def _lacks_calls(request: ChatRequest, raw: RawCompletion) -> bool:
    """Whether any of the texts is a plain answer, as far as it goes."""
    try:
        return not all(request.read(text).calls for text in raw.texts)
    except TurnError:
        return False


async def _without_parser(flow: http.HTTPFlow, request: ChatRequest) -> bytes:
    """Return the raw completion from the endpoints that parse nothing. Raises ReplayFailed where they are missing."""
    url = completion.url_of(flow.request.url, "apply-template")
    prompt = completion.prompt_in(_body_of(await send_again(flow, orjson.dumps(request.body), url)))
    body = completion.completion_request(request.body, prompt)
    answer = await send_again(flow, body, completion.url_of(flow.request.url, "completion"))
    return completion.as_chat_completion(request, prompt, _body_of(answer))


def _body_of(answer: Answer) -> bytes:
    if answer.status != 200:
        beginning = answer.body[:200].decode("utf-8", "replace")
        raise ReplayFailed(f"the engine answered with status {answer.status}: {beginning}")
    return answer.body


def _visible(header: str) -> bytes:
    """Return a comment for a stream: its headers have gone when the failure comes."""
    return sse.comment(f"{HEADER}: {header}")


def _give_up(flow: http.HTTPFlow, reason: str) -> None:
    reason = _UNPRINTABLE.sub("?", " ".join(reason.split()))[:300]
    _mark(flow, "failed", f"failed; reason={reason}")
    logger.warning("pegmend: %s is not repaired, the engine's answer goes on: %s", path_of(flow), reason)


def _without_pinned_seed(flow: http.HTTPFlow) -> bytes:
    """Return the body of a request as the client sent it, if nothing but the seed was added to it."""
    body = flow.request.get_content(strict=False) or b""
    seed = record_of(flow).get("seed")
    return body if seed is None else without_seed(body, seed)


def _mark(flow: http.HTTPFlow, outcome: str, header: str) -> None:
    """Make the outcome visible in the record and in mitmproxy's lists."""
    if request_kinds(flow):
        header += f"; {request_header(flow)}"
    record_of(flow).update(outcome=outcome, header=header)
    make_visible(flow, header)
