"""Which traffic is pegmend's: the configured upstreams, and the chat paths on them."""

import re
from dataclasses import dataclass

DEFAULT = (
    "localhost:12434",
    # Docker's names for the model runner and for the host, as containers see them.
    "model-runner.docker.internal:80",
    "host.docker.internal:12434",
)

CHAT_ENDPOINT = "/chat/completions"
_SPEC = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:/\[\]]+)):(?P<port>[0-9]{1,5})")
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Upstream:
    """The address of an engine; the names of the loopback interface are one."""

    host: str
    port: int

    @classmethod
    def at(cls, host: str, port: int) -> "Upstream":
        """Return the upstream at an address in any spelling."""
        lowered = host.lower()
        return cls("localhost" if lowered in _LOOPBACK_NAMES else lowered, port)

    @property
    def is_model_runner(self) -> bool:
        """Whether this is where Docker Model Runner is found."""
        return self in _MODEL_RUNNERS


def parse_upstream(spec: str) -> Upstream:
    """Return the upstream that `spec` (`host:port`, `[::1]:port`) names. Raises ValueError with what is wrong."""
    found = _SPEC.fullmatch(spec.strip())
    if found is None or not 0 < int(found["port"]) < 65536:
        raise ValueError(f"{spec!r} is not an upstream: give HOST:PORT, for instance localhost:12434 or [::1]:12434")
    return Upstream.at(found["ipv6"] or found["host"], int(found["port"]))


_MODEL_RUNNERS = frozenset(map(parse_upstream, DEFAULT))


def is_chat_path(path: str) -> bool:
    """Whether a request path (with its query) is that of chat completions.

    What stands before them is the engine's affair: `/engines/llama.cpp/v1`, `/api/v1`, what --api-prefix says, nothing.
    """
    return path.partition("?")[0].removesuffix("/").endswith(CHAT_ENDPOINT)
