"""Keeps what flows through a streamed response."""

BODY_LIMIT = 64 * 1024 * 1024
"""More than this is no answer of a model: of a longer body only this much is kept, or read."""


class Tap:
    """A stream callable for mitmproxy that changes nothing and remembers what went to the client."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.size = 0

    def __call__(self, data: bytes) -> bytes | list[bytes]:
        """Take a chunk from the upstream and return what goes to the client now; b"" is the end."""
        self.keep(data)
        return data

    def keep(self, data: bytes) -> None:
        """Remember what is sent."""
        self.size += len(data)
        if self.size <= BODY_LIMIT:
            self.chunks.append(data)

    @property
    def is_whole(self) -> bool:
        """Whether everything was kept."""
        return self.size <= BODY_LIMIT

    def content(self) -> bytes:
        """Return what was kept."""
        return b"".join(self.chunks)
