"""Decides which histories are unfolded: those that the template would refuse, or would lose calls of in silence.

A plain llama-server says at /props what its template takes. Docker Model Runner does not pass that on: there the engine
is asked for a single token of the same request before one with several calls in a message goes out for the first time.
A template that refuses them does so at once; with any other, the prompt is in the cache when the request itself comes.
"""

import re
from typing import Any

from mitmproxy import ctx, http

from pegmend.history import has_several_calls
from pegmend.options import is_chat
from pegmend.replay import ReplayFailed
from pegmend.resend import send_again, verifies_tls
from pegmend.templates import one_token_request, takes_several_by_answer, takes_several_by_props

_FINGERPRINT = re.compile(rb'"system_fingerprint"\s*:\s*"([^"]*)"')


class Unfolding:
    """Remembers for each model of each engine whether its template takes several calls in one message."""

    def __init__(self) -> None:
        self._takes_several: dict[tuple[str, str], bool] = {}
        self._fingerprints: dict[str, bytes] = {}

    async def is_needed(self, flow: http.HTTPFlow, body: dict[str, Any]) -> bool:
        """Whether the history in a request has to be unfolded before it is sent."""
        if ctx.options.pegmend_unfold == "off" or not has_several_calls(body.get("messages")):
            return False
        return ctx.options.pegmend_unfold == "always" or await self._find_out(flow, body) is False

    def learn_refusal(self, flow: http.HTTPFlow, body: dict[str, Any]) -> bool:
        """Note that the template refused a history; whether unfolding it is allowed and changes anything."""
        if ctx.options.pegmend_unfold == "off" or not has_several_calls(body.get("messages")):
            return False
        self._takes_several[_model(flow, body)] = False
        return True

    def response(self, flow: http.HTTPFlow) -> None:
        """Forget the models of an engine that has another fingerprint than before: it is another build or model."""
        if not (self._takes_several and flow.live and is_chat(flow) and flow.response):
            return
        origin = _origin(flow)
        found = _FINGERPRINT.search(flow.response.raw_content or b"")
        if found and self._fingerprints.setdefault(origin, found[1]) != found[1]:
            self._fingerprints[origin] = found[1]
            self._takes_several = {model: takes for model, takes in self._takes_several.items() if model[0] != origin}

    async def _find_out(self, flow: http.HTTPFlow, body: dict[str, Any]) -> bool | None:
        """Return whether the template takes several calls, None where the engine does not tell."""
        model = _model(flow, body)
        if model in self._takes_several:
            return self._takes_several[model]
        takes_several = await takes_several_by_props(flow.request.url, verify_tls=verifies_tls(flow))
        if takes_several is None:
            try:
                answer = await send_again(flow, one_token_request(body))
            except ReplayFailed:
                return None
            takes_several = takes_several_by_answer(answer.status, answer.body)
        if takes_several is not None:
            self._takes_several[model] = takes_several
        return takes_several


def _model(flow: http.HTTPFlow, body: dict[str, Any]) -> tuple[str, str]:
    return _origin(flow), str(body.get("model"))


def _origin(flow: http.HTTPFlow) -> str:
    return f"{flow.request.scheme}://{flow.request.host}:{flow.request.port}"
