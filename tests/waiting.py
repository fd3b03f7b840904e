"""Waits for what another process does in its own time."""

import time
from collections.abc import Callable

_GIVE_UP_SECONDS = 30


def wait_until(condition: Callable[[], bool]) -> None:
    """Return as soon as `condition` holds. Raises TimeoutError where it never does."""
    give_up = time.monotonic() + _GIVE_UP_SECONDS
    while not condition():
        if time.monotonic() > give_up:
            raise TimeoutError(f"not within {_GIVE_UP_SECONDS} s")
        time.sleep(0.02)
