"""Adapts histories to templates that would refuse them, or would lose calls of them in silence.

What a template refuses is learnt from its refusal, and done beforehand from then on. For several calls in one message
there is more: a plain llama-server says at /props whether its template takes them. Docker Model Runner does not pass
that on: there the engine is asked for a single token of the same request before the first such history goes out. A
template that refuses does so at once; with any other, the prompt is in the cache when the request itself comes.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mitmproxy import ctx, http

from pegmend.history import has_long_ids, has_several_calls, unfolded, with_short_ids
from pegmend.options import is_chat
from pegmend.replay import ReplayFailed
from pegmend.resend import origin_of, send_again, verifies_tls
from pegmend.templates import one_token_request, takes_several_by_answer, takes_several_by_props

ADAPTATIONS: dict[str, tuple[Callable[[object], bool], Callable[[Sequence[Any]], list[Any]]]] = {
    "unfolded": (has_several_calls, unfolded),
    "ids": (has_long_ids, with_short_ids),
}
"""By kind: whether it would change a history, and the history that it gives. None of them changes what was said."""

_OPTIONS = {"unfolded": "pegmend_unfold", "ids": "pegmend_ids"}
_FINGERPRINT = re.compile(rb'"system_fingerprint"\s*:\s*"([^"]*)"')


class Adaptation:
    """Remembers for each model of each engine what its template refuses."""

    def __init__(self) -> None:
        self._refuses: dict[tuple[str, str], dict[str, bool]] = {}
        self._fingerprints: dict[str, bytes] = {}

    async def needed(self, flow: http.HTTPFlow, body: dict[str, Any]) -> list[str]:
        """Return the kinds that the history in a request needs before it is sent."""
        return [kind for kind in ADAPTATIONS if _applies(kind, body) and await self._is_needed(kind, flow, body)]

    def learn(self, kind: str, flow: http.HTTPFlow, body: dict[str, Any]) -> bool:
        """Note that the template refused a history; whether adapting it is allowed and changes anything."""
        if not _applies(kind, body):
            return False
        self._remember(kind, flow, body, refuses=True)
        return True

    def response(self, flow: http.HTTPFlow) -> None:
        """Forget the models of an engine that has another fingerprint than before: it is another build or model."""
        if not (self._refuses and flow.live and is_chat(flow) and flow.response):
            return
        origin = origin_of(flow)
        found = _FINGERPRINT.search(flow.response.raw_content or b"")
        if found and self._fingerprints.setdefault(origin, found[1]) != found[1]:
            self._fingerprints[origin] = found[1]
            self._refuses = {model: known for model, known in self._refuses.items() if model[0] != origin}

    async def _is_needed(self, kind: str, flow: http.HTTPFlow, body: dict[str, Any]) -> bool:
        if getattr(ctx.options, _OPTIONS[kind]) == "always":
            return True
        known = self._refuses.get(_model(flow, body), {})
        if kind in known:
            return known[kind]
        return kind == "unfolded" and await self._refuses_several_calls(flow, body)

    async def _refuses_several_calls(self, flow: http.HTTPFlow, body: dict[str, Any]) -> bool:
        """Ask the engine; where it does not tell, the history goes out as it is."""
        takes_several = await takes_several_by_props(flow.request.url, verify_tls=verifies_tls(flow))
        if takes_several is not None:
            return not takes_several
        try:
            answer = await send_again(flow, one_token_request(body))
        except ReplayFailed:
            return False
        takes_several = takes_several_by_answer(answer.status, answer.body)
        if takes_several is not None:
            self._remember("unfolded", flow, body, refuses=not takes_several)
        return takes_several is False

    def _remember(self, kind: str, flow: http.HTTPFlow, body: dict[str, Any], *, refuses: bool) -> None:
        self._refuses.setdefault(_model(flow, body), {})[kind] = refuses


def adapted(messages: Sequence[Any], kinds: Iterable[str]) -> list[Any]:
    """Return a history with each of the adaptations made."""
    history = list(messages)
    for kind in kinds:
        history = ADAPTATIONS[kind][1](history)
    return history


def _applies(kind: str, body: dict[str, Any]) -> bool:
    return getattr(ctx.options, _OPTIONS[kind]) != "off" and ADAPTATIONS[kind][0](body.get("messages"))


def _model(flow: http.HTTPFlow, body: dict[str, Any]) -> tuple[str, str]:
    return origin_of(flow), str(body.get("model"))
