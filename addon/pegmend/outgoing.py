"""The request on its way to the engine."""

import logging
import secrets

from mitmproxy import ctx, http

from pegmend.dialects.openai_chat import ChatRequest
from pegmend.options import is_chat
from pegmend.record import forget_record, record_of

logger = logging.getLogger(__name__)

_SEED_BITS = 31
_TOOLS_KEY = b'"tools"'


class Outgoing:
    """Pins the seed of requests with tools, so that the raw replay of a failed turn is the same generation."""

    def request(self, flow: http.HTTPFlow) -> None:
        """Splice a seed into the body; an error leaves the request as it is."""
        if not flow.live or not is_chat(flow):
            return
        forget_record(flow)
        if not ctx.options.pegmend_pin_seed:
            return
        try:
            self._pin_seed(flow)
        except Exception:
            logger.exception("pegmend: the request goes on as it is.")

    def _pin_seed(self, flow: http.HTTPFlow) -> None:
        request = flow.request
        body = request.raw_content
        # A body in another encoding is not the engine's JSON, and one without that word declares no tools.
        if not body or _TOOLS_KEY not in body or "content-encoding" in request.headers:
            return
        parsed = ChatRequest.parse(body)
        if parsed is None or not parsed.has_tools or parsed.has_fixed_seed:
            return
        seed = secrets.randbits(_SEED_BITS)
        request.raw_content = with_seed(body, seed)
        request.headers["content-length"] = str(len(request.raw_content))
        record_of(flow)["seed"] = seed


def with_seed(body: bytes, seed: int) -> bytes:
    """Return a JSON object with a seed added as its last member; every other byte stays.

    As the last one it counts even where the object has a seed of null already: of equal keys the engine takes the last.
    `body` is an object with at least one member.
    """
    end = body.rindex(b"}")
    return b'%b,"seed":%d%b' % (body[:end], seed, body[end:])
