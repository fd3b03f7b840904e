"""Which traffic counts when it is asked whose a log entry is."""

import asyncio
from pathlib import Path

import pytest
from mitmproxy import http
from mitmproxy.test import taddons, tflow

from pegmend.dialects.openai_chat import ChatRequest
from pegmend.failure import Failure
from pegmend.logwatch import LogWatch
from pegmend.options import PegmendOptions


def flow_to(path: str, method: str = "POST", port: int = 9) -> http.HTTPFlow:
    flow = tflow.tflow()
    flow.request.host, flow.request.port, flow.request.method, flow.request.path = "localhost", port, method, path
    return flow


@pytest.mark.parametrize(
    ("other", "counts"),
    [
        (flow_to("/v1/chat/completions"), True),
        (flow_to("/v1/messages"), True),
        (flow_to("/v1/responses"), True),
        (flow_to("/completion"), True),
        (flow_to("/v1/models", "GET"), False),
        (flow_to("/v1/messages", port=10), False),
    ],
    ids=lambda value: value.request.path if isinstance(value, http.HTTPFlow) else "",
)
def test_every_request_that_may_fail_in_the_same_way_counts(tmp_path: Path, other: http.HTTPFlow, counts: bool) -> None:
    async def doubt() -> str:
        watch = LogWatch()
        with taddons.context(PegmendOptions(), watch) as context:
            context.options.update(
                pegmend_upstreams=["localhost:9"], pegmend_log=f"file:{tmp_path / 'log'}", pegmend_log_wait_ms=20
            )
            (tmp_path / "log").write_text("")
            started = asyncio.get_running_loop().time()
            first = flow_to("/v1/chat/completions")
            watch.request(first)
            while not watch._journals[next(iter(watch._journals))].covered_since:
                assert asyncio.get_running_loop().time() < started + 10
                await asyncio.sleep(0.01)
            watch.response(first)
            own = flow_to("/v1/chat/completions")
            watch.request(own)
            watch.request(other)
            _, doubt = await watch.entry_of(own, ChatRequest({}), Failure("peg-native", ""))
            watch.done()
            return doubt

    assert asyncio.run(doubt()) == ("another request was under way" if counts else "nothing was logged")
