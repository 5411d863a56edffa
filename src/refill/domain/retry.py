"""When a failed slice is tried again: decided here, and nowhere else."""

import random
from dataclasses import dataclass

from refill.domain.slice import Fault


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with full jitter, up to a number of failures."""

    max_failures: int = 8  # about two minutes in all: a server's restart passes
    base_seconds: float = 1.0
    cap_seconds: float = 60.0
    longest_asked_seconds: float = 3600.0  # whoever asks for more meant something else

    def delay_seconds(self, fault: Fault, failures: int, rng: random.Random) -> float | None:
        """How long to wait before the next attempt; None: do not try again.

        `failures` counts this one. What the other side asked for (Retry-After) is honoured, up to
        an hour.
        """
        if not fault.transient or failures >= self.max_failures:
            return None
        ceiling = min(self.cap_seconds, self.base_seconds * 2.0 ** (failures - 1))
        wait = rng.uniform(ceiling / 2, ceiling)
        return max(wait, min(fault.retry_after_seconds or 0.0, self.longest_asked_seconds))
