"""Records every request/response pair of the engines, in mitmproxy's own flow format."""

import io
import logging
import re
from collections.abc import Set
from datetime import UTC, datetime
from urllib.parse import quote, unquote_plus

from mitmproxy import ctx, http
from mitmproxy.io import FlowWriter

from pegmend.capturefiles import CaptureFiles
from pegmend.failure import may_be_failure
from pegmend.options import capture_dir, is_chat, is_upstream
from pegmend.record import KEY, is_whole_stream, outcome_of, record_of
from pegmend.tap import BODY_LIMIT, Tap

REDACTED = "[redacted by pegmend]"
# In names of headers and of query parameters. Better a name too many than a secret in a file: "keyword" is one of them.
_SECRET = re.compile(
    r"auth|cookie|credential|jwt|(?<!mon)key|passw|passphrase|pwd|secret|session|signature|(?<![a-z])sig(?![a-z])|token",
    re.IGNORECASE,
)

logger = logging.getLogger(__name__)


class Capture:
    """Lets responses pass as they arrive, and appends each finished exchange to a capture file."""

    def __init__(self) -> None:
        self._files: CaptureFiles | None = None
        self._is_broken = False

    def configure(self, updated: Set[str]) -> None:
        """Take over the folder and the bound."""
        if updated & {"pegmend_capture_dir", "pegmend_capture_max_mb"}:
            self._files = CaptureFiles(capture_dir(), ctx.options.pegmend_capture_max_mb * 1024 * 1024)
            self._is_broken = False

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        """Stream every response that cannot be the failure: mitmproxy would hold it back to its end."""
        if not flow.live or flow.response is None or not is_upstream(flow):
            return
        if is_chat(flow) and (may_be_failure(flow.response.status_code) or is_whole_stream(flow.response)):
            return
        if not flow.response.stream:
            flow.response.stream = Tap()

    def response(self, flow: http.HTTPFlow) -> None:
        """Record a finished exchange."""
        self._finish(flow)

    def error(self, flow: http.HTTPFlow) -> None:
        """Record an exchange that was cut off, by the client or by the engine."""
        self._finish(flow)

    def _finish(self, flow: http.HTTPFlow) -> None:
        tap = flow.response.stream if flow.response is not None else None
        if isinstance(tap, Tap):
            assert flow.response is not None
            # The client has it already: this is for the record and for mitmproxy's own views.
            flow.response.data.content = tap.content()
            if not tap.is_whole:
                record_of(flow)["body_cut_at"] = BODY_LIMIT
        # A flow that was read from a file is not live, and recorded already.
        if flow.live and is_upstream(flow) and self._wants(flow):
            self._write(flow)

    def _wants(self, flow: http.HTTPFlow) -> bool:
        wanted: str = ctx.options.pegmend_capture
        return wanted == "all" or (wanted == "repaired" and outcome_of(flow) is not None)

    def _write(self, flow: http.HTTPFlow) -> None:
        assert self._files is not None
        try:
            self._files.append(serialized(flow), datetime.now(UTC).astimezone().date())
        except Exception as error:
            if not self._is_broken:
                logger.warning(
                    "pegmend: cannot record in %s: %s. Traffic goes on unrecorded; see pegmend_capture_dir.",
                    self._files.folder,
                    error,
                )
            self._is_broken = True
        else:
            self._is_broken = False


def serialized(flow: http.HTTPFlow) -> bytes:
    """Return a flow in mitmproxy's flow format, without the secrets in its headers and its query."""
    copy = flow.copy()
    copy.id = flow.id
    copy.metadata = {KEY: flow.metadata[KEY]} if KEY in flow.metadata else {}  # other addons keep passwords there
    for message in (copy.request, copy.response):
        if message is not None:
            for name in {name for name in message.headers if _is_secret(name)}:
                message.headers[name] = REDACTED
    copy.request.path = _without_secrets(copy.request.path)
    buffer = io.BytesIO()
    FlowWriter(buffer).add(copy)
    return buffer.getvalue()


def _without_secrets(path: str) -> str:
    """Return a path with the values of its query redacted whose names tell of a secret."""
    address, mark, query = path.partition("?")
    return address + mark + "&".join(map(_without_secret, query.split("&")))


def _without_secret(parameter: str) -> str:
    name, equals, _ = parameter.partition("=")
    return f"{name}={quote(REDACTED, safe='[]')}" if equals and _is_secret(unquote_plus(name)) else parameter


def _is_secret(name: str) -> bool:
    return _SECRET.search(name) is not None
