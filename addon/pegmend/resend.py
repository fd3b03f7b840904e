"""Sends the request of a flow to its engine again, with another body; where that engine is, and how it is trusted."""

from mitmproxy import ctx, http
from mitmproxy.connection import ConnectionState

from pegmend.replay import Answer, ReplayRequest, exchange, replay_headers


async def send_again(flow: http.HTTPFlow, body: bytes, url: str | None = None) -> Answer:
    """Return the engine's answer, from another `url` where one is given.

    Raises ReplayFailed where there is none in time, or the client goes away.
    """
    return await exchange(
        ReplayRequest(url or flow.request.url, replay_headers(flow.request.headers.fields), body),
        timeout_seconds=ctx.options.pegmend_replay_timeout_ms / 1000,
        client_is_gone=lambda: not flow.client_conn.state & ConnectionState.CAN_READ,
        verify_tls=verifies_tls(flow),
    )


def verifies_tls(flow: http.HTTPFlow) -> bool:
    """Whether the engine's certificate has to be checked."""
    return flow.request.scheme == "https" and not ctx.options.ssl_insecure


def origin_of(flow: http.HTTPFlow) -> str:
    """Return scheme, host and port of a flow's engine."""
    return f"{flow.request.scheme}://{flow.request.host}:{flow.request.port}"
