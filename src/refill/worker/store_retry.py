"""Insisting on a store that is busy: a worker's finish must not be lost to a locked file."""

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from refill.domain.errors import StoreBusy

log = logging.getLogger(__name__)

T = TypeVar("T")


def retry_store(
    call: Callable[[], T],
    *,
    abandoned: threading.Event,
    first_wait_seconds: float = 0.1,
    longest_wait_seconds: float = 2.0,
) -> T:
    """Tries until the store answers. Every call that goes through here is conditional on an
    attempt, so that one which succeeded unnoticed does no harm when it is made again."""
    wait = first_wait_seconds
    while True:
        try:
            return call()
        except StoreBusy as exc:
            if abandoned.is_set():
                raise
            log.warning("the store is busy: %s", exc.message, extra={"action": "store_busy"})
            abandoned.wait(wait)
            wait = min(wait * 2, longest_wait_seconds)
