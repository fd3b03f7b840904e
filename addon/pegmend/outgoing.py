"""The request on its way to the engine: made well-formed, adapted to the template, and given a seed."""

import asyncio
import logging
import re
import secrets
from typing import Any

import orjson
from mitmproxy import ctx, http

from pegmend.adaptation import Adaptation, adapted
from pegmend.dialects.openai_chat import ChatRequest
from pegmend.history import with_sound_arguments
from pegmend.mojibake import without_mojibake
from pegmend.options import is_chat
from pegmend.record import forget_record, keep_request, path_of, record_of
from pegmend.utf8 import Body, read_body, sound_body

logger = logging.getLogger(__name__)

_SEED_BITS = 31
_CHARSET = re.compile(r"""(;\s*charset\s*=\s*)(?:"([^"]*)"|([^\s;]+))""", re.IGNORECASE)


class Outgoing:
    """Changes what the engine would refuse although it is clear, and pins the seed of requests with tools."""

    def __init__(self, adaptation: Adaptation) -> None:
        self._adaptation = adaptation

    async def request(self, flow: http.HTTPFlow) -> None:
        """Repair the body; an error leaves the request as it is."""
        if not flow.live or not is_chat(flow):
            return
        forget_record(flow)
        try:
            await self._prepare(flow)
        except Exception:
            logger.exception("pegmend: the request goes on as it is.")

    async def _prepare(self, flow: http.HTTPFlow) -> None:
        raw = flow.request.get_content(strict=False)
        if not raw:
            return
        body = sound_body(raw)
        if body is None:
            # To repair a body takes a while, in which other connections want to be served.
            body = await asyncio.to_thread(read_body, raw, _charset(flow.request))
        if body.problem:
            logger.warning("pegmend: the request to %s is not JSON: %s", path_of(flow), body.problem)
        if body.problem or (body.is_changed and not ctx.options.pegmend_repair_requests):
            return
        value, kinds, notes = await self._repaired_history(flow, body.value)
        sent = orjson.dumps(value) if notes else body.raw
        kinds, notes = _changes_of(body, kinds, notes)
        if kinds:
            keep_request(flow, raw, kinds, notes)
        sent = _pin_seed(flow, value, sent)
        if sent is not raw:
            _set_body(flow.request, sent, body.encoding)

    async def _repaired_history(self, flow: http.HTTPFlow, value: Any) -> tuple[Any, list[str], list[str]]:
        """Return the body with a history that the engine takes, and what was done: its kinds, and where."""
        kinds: list[str] = []
        notes: list[str] = []
        if not isinstance(value, dict):
            return value, kinds, notes
        for kind, is_wanted, repair in (
            ("arguments", ctx.options.pegmend_repair_requests, with_sound_arguments),
            ("mojibake", ctx.options.pegmend_mojibake, without_mojibake),
        ):
            repaired = repair(value.get("messages")) if is_wanted else None
            if repaired is not None:
                value = {**value, "messages": repaired[0]}
                kinds.append(kind)
                notes += repaired[1]
        if needed := await self._adaptation.needed(flow, value):
            value = {**value, "messages": adapted(value["messages"], needed)}
            kinds += needed
            notes += [f"messages: {kind}" for kind in needed]
        return value, kinds, notes


def _changes_of(body: Body, kinds: list[str], notes: list[str]) -> tuple[list[str], list[str]]:
    """Return the kinds and places of all changes, those of the bytes first."""
    places = [f"byte {one.offset}: {one.before!r} to {one.after!r} ({one.reason})" for one in body.changes]
    if untold := body.change_count - len(body.changes):
        places.append(f"{untold} more places")
    if body.encoding:
        places.insert(0, f"{body.encoding} to utf-8")
    return ["bytes", *kinds] if places else kinds, places + notes


def _pin_seed(flow: http.HTTPFlow, value: Any, sent: bytes) -> bytes:
    """Return the body with a random seed, where it has tools and none of its own."""
    if not ctx.options.pegmend_pin_seed or not isinstance(value, dict):
        return sent
    request = ChatRequest(value)
    if not request.has_tools or request.has_fixed_seed:
        return sent
    seed = secrets.randbits(_SEED_BITS)
    record_of(flow)["seed"] = seed
    return with_seed(sent, seed)


def with_seed(body: bytes, seed: int) -> bytes:
    """Return a JSON object with a seed added as its last member; every other byte stays.

    As the last one it counts even where the object has a seed of null already: of equal keys the engine takes the last.
    `body` is an object with at least one member.
    """
    end = body.rindex(b"}")
    return b'%b,"seed":%d%b' % (body[:end], seed, body[end:])


def without_seed(body: bytes, seed: int) -> bytes:
    """Return a JSON object as it was before `with_seed`."""
    before, _, after = body.rpartition(b',"seed":%d' % seed)
    return before + after


def _charset(request: http.Request) -> str:
    found = _CHARSET.search(request.headers.get("content-type", ""))
    return (found[2] or found[3]) if found else ""


def _set_body(request: http.Request, body: bytes, encoding: str) -> None:
    """Give a request another body, compressed as before, and the headers that go with it."""
    if encoding and "content-type" in request.headers:
        request.headers["content-type"] = _CHARSET.sub(r"\1utf-8", request.headers["content-type"])
    request.content = body
