"""Follows the log of every engine that is used, and finds the entry of a failed request in it."""

import asyncio
import logging
import time

from mitmproxy import ctx, http

from pegmend.attribution import TIME_UNKNOWN, Case, doubt_about
from pegmend.dialects.openai_chat import ChatRequest
from pegmend.enginelog import FailureEntry
from pegmend.failure import Failure
from pegmend.journal import Journal
from pegmend.logsource import follow, source_of
from pegmend.options import is_upstream
from pegmend.resend import origin_of
from pegmend.upstreams import Upstream

logger = logging.getLogger(__name__)

_CHECK_SECONDS = 0.01


class LogWatch:
    """Notes when requests run, and the entries that the engines log meanwhile."""

    def __init__(self) -> None:
        self._journals: dict[Upstream, Journal] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._candidates: dict[str, FailureEntry] = {}

    def request(self, flow: http.HTTPFlow) -> None:
        """Note the start of a request; the first one to an engine begins to follow its log.

        Text that other endpoints generate (`/v1/messages`, `/v1/responses`) fails with the same entries.
        """
        may_fail = flow.request.method == "POST" and is_upstream(flow)
        if flow.live and ctx.options.pegmend_log != "off" and may_fail:
            self._journal(flow).begin(flow.id, time.monotonic())

    def response(self, flow: http.HTTPFlow) -> None:
        """Note the end of a request."""
        self._candidates.pop(flow.id, None)
        for journal in self._journals.values():
            if journal.knows(flow.id):
                journal.end(flow.id, time.monotonic())

    error = response

    def done(self) -> None:
        """Stop following."""
        for task in self._tasks:
            task.cancel()

    async def entry_of(
        self, flow: http.HTTPFlow, request: ChatRequest, failure: Failure
    ) -> tuple[FailureEntry | None, str]:
        """Return what the engine logged about a failed request, or None and the reason why nothing can be used."""
        journal = self._journals.get(_upstream(flow))
        if journal is None or not journal.knows(flow.id):
            return None, "the log is not followed"
        journal.fail(flow.id, time.monotonic())
        await self._wait_for_entry(journal, flow.id)
        case = Case(journal.window(flow.id), failure.format, request.read, ctx.options.pegmend_replay)
        if case.window.entries:
            journal.claim(flow.id)
        doubt = doubt_about(case)
        if doubt == TIME_UNKNOWN:
            self._candidates[flow.id] = case.entry
        return (case.entry, "") if doubt is None else (None, doubt)

    def confirm(self, flow: http.HTTPFlow, text: str) -> None:
        """Set the engine's clock by a turn whose whole text is known, where its only entry is the end of that."""
        entry = self._candidates.pop(flow.id, None)
        if entry is not None and entry.remainder and entry.ends(text):
            self._journals[_upstream(flow)].calibrate(flow.id, entry)

    async def _wait_for_entry(self, journal: Journal, request: str) -> None:
        """Wait as long as an entry may be of use, and then for a second one, which would make the first doubtful.

        The log may lag: the first entry may be that of a client that bypasses the proxy, and the request's own follow.
        """
        deadline = time.monotonic() + ctx.options.pegmend_log_wait_ms / 1000
        while time.monotonic() < deadline:
            window = journal.window(request)
            if not window.is_covered or window.others or window.unclaimed or len(window.entries) > 1:
                return
            await asyncio.sleep(_CHECK_SECONDS)

    def _journal(self, flow: http.HTTPFlow) -> Journal:
        upstream = _upstream(flow)
        if upstream not in self._journals:
            self._journals[upstream] = journal = Journal()
            origin = origin_of(flow)
            source = source_of(ctx.options.pegmend_log, origin, is_model_runner=upstream.is_model_runner)

            def started() -> None:
                logger.info("pegmend: following the log of the engine at %s", origin)
                journal.start_covering(time.monotonic())

            if source is not None:
                following = follow(
                    source,
                    started=started,
                    logged=lambda entry: journal.log(entry, time.monotonic()),
                    stopped=journal.stop_covering,
                )
                self._tasks.append(asyncio.get_running_loop().create_task(following))
        return self._journals[upstream]


def _upstream(flow: http.HTTPFlow) -> Upstream:
    return Upstream.at(flow.request.host, flow.request.port)
