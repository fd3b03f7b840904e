"""The command `pegmend`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from mitmproxy.tools.main import mitmdump

from pegmend import __version__, addons
from pegmend.offline import UnreadableCapture, review

# A generation may be silent for longer than mitmproxy's 600 seconds.
_TCP_TIMEOUT_SECONDS = 86_400


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    parser = _parser()
    parsed, rest = parser.parse_known_args(arguments)
    if parsed.command == "replay":
        if rest:
            parser.error(f"unrecognized arguments: {' '.join(rest)}")
        return _replay(parsed.files)
    return _run(parsed, [argument for argument in rest if argument != "--"])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pegmend",
        description="Gives agents back the tool calls that llama.cpp's parser turns into HTTP 500.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"pegmend {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser(
        "run",
        help="start the proxy",
        description="Start the proxy on loopback, in regular and in reverse mode. Any other argument goes to mitmdump: "
        "--set pegmend_capture=off, -w flows.mitm and so on.",
        allow_abbrev=False,
    )
    run.add_argument("--port", type=int, default=8080, help="port for HTTP_PROXY (default: %(default)s)")
    run.add_argument("--reverse-port", type=int, default=12435, help="port in place of the engine's (%(default)s)")
    run.add_argument("--upstream", type=_origin, default="http://127.0.0.1:12434", help="the engine (%(default)s)")
    replay = commands.add_parser(
        "replay",
        help="read capture files and say what the repair makes of their turns",
        description="Exit status: 0 where nothing stays unrepaired, 1 where something does, 2 for an unreadable file.",
        allow_abbrev=False,
    )
    replay.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a file in mitmproxy's flow format")
    return parser


def _origin(url: str) -> str:
    """Return the origin in `url`, which may be a whole base URL. Raises ArgumentTypeError."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{url!r}: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise argparse.ArgumentTypeError(f"{url!r} is not the URL of an engine, such as http://127.0.0.1:12434")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port}"


def _run(parsed: argparse.Namespace, rest: Sequence[str]) -> int:
    regular = f"http://127.0.0.1:{parsed.port}"
    reverse = f"http://127.0.0.1:{parsed.reverse_port}"
    print(
        f"pegmend {__version__} in front of {parsed.upstream}. Point your agent at it in one of two ways:\n"
        f"  base URL  {reverse}/engines/v1 (llama-server: {reverse}/v1)\n"
        f"  proxy     HTTP_PROXY={regular} http_proxy={regular}\n",
        flush=True,
    )
    mitmdump(
        [
            *("--mode", f"regular@127.0.0.1:{parsed.port}"),
            *("--mode", f"reverse:{parsed.upstream}@127.0.0.1:{parsed.reverse_port}"),
            *("--set", f"tcp_timeout={_TCP_TIMEOUT_SECONDS}"),
            *("-s", str(addons.__file__)),
            *rest,
        ]
    )
    return 0


def _replay(files: Sequence[Path]) -> int:
    status = 0
    for file in files:
        print(file)
        number = 0
        try:
            for number, turn in enumerate(review(file), 1):
                print(f"{number:5}  {turn.engine:16}  {turn.result:60}  {turn.path}".rstrip())
                if turn.is_repaired is False:
                    status = max(status, 1)
        except UnreadableCapture as error:
            print(f"pegmend: {error}", file=sys.stderr)
            status = 2
        else:
            if not number:
                print("       no chat completions in it")
    return status
