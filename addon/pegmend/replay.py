"""The raw replay: the same request once more, answered with the model's raw text."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import httpx

from pegmend.tap import BODY_LIMIT

Headers = tuple[tuple[bytes, bytes], ...]
"""Header fields as they stand on the wire: clients write them in any encoding."""

# Headers of one connection or one body. Everything else is sent again, authorization too.
_HOP_HEADERS = frozenset(
    {
        b"accept-encoding",
        b"connection",
        b"content-encoding",
        b"content-length",
        b"expect",
        b"keep-alive",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_CLIENT_CHECK_SECONDS = 0.25


class ReplayFailed(Exception):
    """No raw output came back; the message says why."""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """Where to send what: the original's URL and headers, the replay's body."""

    url: str
    headers: Headers
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    content_type: str
    body: bytes


def replay_headers(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return those headers of the original request that belong to its replay as well."""
    return tuple((name, value) for name, value in headers if name.lower() not in _HOP_HEADERS)


async def exchange(
    request: ReplayRequest, *, timeout_seconds: float, client_is_gone: Callable[[], bool], verify_tls: bool = True
) -> Answer:
    """Send a request and return the answer.

    Raises ReplayFailed where there is none, it takes longer than the timeout, or `client_is_gone` becomes true. The
    request is cancelled then, so that the engine can stop.
    """
    work = asyncio.create_task(_send(request, verify_tls))
    try:
        return await _first_of(work, timeout_seconds, client_is_gone)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ReplayFailed(f"{type(error).__name__}: {error}") from error
    finally:
        work.cancel()


async def _send(request: ReplayRequest, verify_tls: bool) -> Answer:
    headers = [*request.headers, (b"Accept-Encoding", b"identity")]
    # No proxy variables: the request would come back to this very proxy.
    async with (
        httpx.AsyncClient(trust_env=False, timeout=None, verify=verify_tls) as client,  # noqa: S113
        client.stream("POST", request.url, headers=headers, content=request.body) as response,
    ):
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > BODY_LIMIT:
                raise ReplayFailed(f"the answer is longer than {BODY_LIMIT} bytes")
    return Answer(response.status_code, response.headers.get("content-type", ""), bytes(body))


async def _first_of(work: "asyncio.Task[Answer]", timeout_seconds: float, client_is_gone: Callable[[], bool]) -> Answer:
    """Return what `work` returns, unless time is up or the client goes away before."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_seconds
    while True:
        left = deadline - loop.time()
        if left <= 0:
            raise ReplayFailed(f"no answer within {timeout_seconds:g} s")
        # mitmproxy holds events back while a hook runs, the end of the client's connection too: its state has to be
        # looked at.
        done, _ = await asyncio.wait({work}, timeout=min(left, _CLIENT_CHECK_SECONDS))
        if done:
            return work.result()
        if client_is_gone():
            raise ReplayFailed("the client went away")
