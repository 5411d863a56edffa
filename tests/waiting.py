"""Waiting for what another thread or process does, instead of sleeping and hoping."""

import time
from collections.abc import Callable
from typing import Any


def until(
    condition: Callable[[], Any], what: str, seconds: float = 60.0, every_seconds: float = 0.02
) -> Any:
    """What the condition returns once it is true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(every_seconds)
    return found
