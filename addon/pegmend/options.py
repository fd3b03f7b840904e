"""Every option: its name, its default, its check."""

import logging
from collections.abc import Sequence, Set
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path

from mitmproxy import ctx, exceptions, http
from mitmproxy.addonmanager import Loader
from mitmproxy.proxy.mode_specs import ProxyMode, ReverseMode

from pegmend.logsource import expanded, source_of
from pegmend.upstreams import DEFAULT, Upstream, is_chat_path, parse_upstream

CAPTURE_CHOICES = ("all", "repaired", "off")
INCOMPLETE_CHOICES = ("error", "deliver")
ADAPTATION_CHOICES = ("auto", "always", "off")
_CHOICES = {
    "pegmend_capture": CAPTURE_CHOICES,
    "pegmend_incomplete": INCOMPLETE_CHOICES,
    "pegmend_unfold": ADAPTATION_CHOICES,
    "pegmend_ids": ADAPTATION_CHOICES,
}

logger = logging.getLogger(__name__)


class PegmendOptions:
    """Declares the options, checks their values, and warns about settings that do not do what they seem to do."""

    def load(self, loader: Loader) -> None:
        """Declare the options."""
        # It tells of every request with its URL, and a query may hold a secret.
        logging.getLogger("httpx").setLevel(logging.WARNING)
        loader.add_option(
            "pegmend_upstreams",
            Sequence[str],
            list(DEFAULT),
            "Engines whose traffic is repaired and recorded, HOST:PORT each. The target of a reverse mode counts too.",
        )
        loader.add_option("pegmend_replay", bool, True, "Ask the engine again for the raw text of a failed turn.")
        loader.add_option(
            "pegmend_replay_timeout_ms", int, 600_000, "How long each exchange with the engine for that may take."
        )
        loader.add_option(
            "pegmend_pin_seed",
            bool,
            True,
            "Give requests with tools and without a seed a random one, so that the second run is the same generation.",
        )
        loader.add_option(
            "pegmend_log",
            str,
            "auto",
            "The engine's log: auto, off, http (the engine's /logs), file:PATH, or command:COMMAND that prints it.",
        )
        loader.add_option("pegmend_log_wait_ms", int, 500, "How long to wait for the log after a failure.")
        loader.add_option(
            "pegmend_incomplete",
            str,
            "error",
            "Calls that are known only from the end of the log's text: an error, or deliver them all the same.",
            choices=INCOMPLETE_CHOICES,
        )
        loader.add_option(
            "pegmend_repair_requests", bool, True, "Make ill-formed bytes and arguments in requests well-formed."
        )
        loader.add_option(
            "pegmend_unfold",
            str,
            "auto",
            "Histories with several calls in one message, one call a message: where the template refuses them, or not.",
            choices=ADAPTATION_CHOICES,
        )
        loader.add_option(
            "pegmend_ids",
            str,
            "auto",
            "Ids of calls, nine letters and digits in place of others: where the template refuses those, or not.",
            choices=ADAPTATION_CHOICES,
        )
        loader.add_option(
            "pegmend_mojibake", bool, False, "Undo mojibake in what assistants and tools said, where it is certain."
        )
        loader.add_option("pegmend_capture", str, "all", "What to record.", choices=CAPTURE_CHOICES)
        loader.add_option("pegmend_capture_dir", str, "~/.pegmend/captures", "Where to record.")
        loader.add_option("pegmend_capture_max_mb", int, 1024, "How much to keep; the oldest files go first.")

    def configure(self, updated: Set[str]) -> None:
        """Check the values. Raises OptionsError with what is wrong."""
        if "pegmend_upstreams" in updated:
            try:
                _upstreams(tuple(ctx.options.pegmend_upstreams), ())
            except ValueError as error:
                raise exceptions.OptionsError(f"pegmend_upstreams: {error}.") from error
        for name, choices in _CHOICES.items():
            # mitmproxy does not check the choices of an option that was set before the script was loaded.
            value = getattr(ctx.options, name)
            if name in updated and value not in choices:
                raise exceptions.OptionsError(f"{name} is {value!r}: give one of {', '.join(choices)}.")
        for name, check in (
            ("pegmend_log", lambda: source_of(ctx.options.pegmend_log, "http://localhost", is_model_runner=False)),
            ("pegmend_capture_dir", capture_dir),
        ):
            if name in updated:
                try:
                    check()
                except ValueError as error:
                    raise exceptions.OptionsError(f"{name}: {error}.") from error
        for name in ("pegmend_replay_timeout_ms", "pegmend_log_wait_ms", "pegmend_capture_max_mb"):
            if name in updated and getattr(ctx.options, name) <= 0:
                raise exceptions.OptionsError(f"{name} must be greater than 0, not {getattr(ctx.options, name)}.")

    def running(self) -> None:
        """Warn about misspelled options and about listeners that others can reach."""
        for name in ctx.options.deferred:
            if name.startswith("pegmend_"):
                logger.warning("pegmend: there is no option %s; it has no effect.", name)
        proxyserver = ctx.master.addons.get("proxyserver")
        for host, port, *_ in proxyserver.listen_addrs() if proxyserver else ():
            if not ip_address(host.partition("%")[0]).is_loopback:
                logger.warning(
                    "pegmend: the proxy listens on %s port %d, where other machines can reach it and the models behind "
                    "it. Give --listen-host 127.0.0.1 unless you want that.",
                    host,
                    port,
                )


@lru_cache(maxsize=1)
def _upstreams(specs: tuple[str, ...], modes: tuple[str, ...]) -> frozenset[Upstream]:
    """Return the engines that the options name; the targets of reverse modes are among them."""
    parsed_modes = (ProxyMode.parse(mode) for mode in modes)
    targets = (Upstream.at(*mode.address) for mode in parsed_modes if isinstance(mode, ReverseMode))
    return frozenset([*map(parse_upstream, specs), *targets])


def is_upstream(flow: http.HTTPFlow) -> bool:
    """Whether a flow goes to one of the engines."""
    upstreams = _upstreams(tuple(ctx.options.pegmend_upstreams), tuple(ctx.options.mode))
    return Upstream.at(flow.request.host, flow.request.port) in upstreams


def is_chat(flow: http.HTTPFlow) -> bool:
    """Whether a flow is a chat completion on one of the engines; in a flow file any address is one."""
    is_chat_request = flow.request.method == "POST" and is_chat_path(flow.request.path)
    return is_chat_request and (not flow.live or is_upstream(flow))


def capture_dir() -> Path:
    """The folder for captures."""
    return expanded(ctx.options.pegmend_capture_dir)
