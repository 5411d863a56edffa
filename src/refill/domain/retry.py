"""When a failed slice is tried again: decided here, and nowhere else."""

import random
from dataclasses import dataclass, replace

from refill.domain.errors import EngineUnavailable, Stalled, StoreBusy, Superseded
from refill.domain.slice import Fault

WORKER_LOST = Fault(
    code="worker_lost",
    message="The worker that ran it stopped answering; if it repeats, see its log and memory.",
    transient=True,
)
ENGINE_KILLED = Fault(
    code="engine_killed",
    message="Spark ended each time that it ran this, the last time with nothing beside it; see how "
    "much memory its rows and its SQL need.",
    transient=False,
)
# codes of faults that no source and no sink is to blame for
OUR_FAULTS = frozenset({WORKER_LOST.code, StoreBusy.code, EngineUnavailable.code, Superseded.code})
# each try of what stands still holds a slot for minutes
STALLS = 2


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with full jitter, up to a number of failures."""

    max_failures: int = 8  # about two minutes in all: a server's restart passes
    base_seconds: float = 1.0
    cap_seconds: float = 60.0
    longest_asked_seconds: float = 3600.0  # whoever asks for more meant something else
    max_retries: int | None = None  # of the pipeline, for faults of its source and sink

    def limited(self, max_retries: int | None) -> "RetryPolicy":
        """As a pipeline asks for: so many attempts after the first. None: it does not ask. Faults
        of refill itself (a lost worker, Spark, the store) are not the sink's: they may always come
        as often as the worker is set to bear."""
        return replace(self, max_retries=max_retries)

    def delay_seconds(self, fault: Fault, failures: int, rng: random.Random) -> float | None:
        """How long to wait before the next attempt; None: do not try again.

        `failures` counts this one. What the other side asked for (Retry-After) is honoured, up to
        an hour.
        """
        if not fault.transient or failures >= self._limit(fault):
            return None
        # 2 ** 30 is beyond any ceiling; a greater power is beyond a float in the end
        ceiling = min(self.cap_seconds, self.base_seconds * 2.0 ** min(failures - 1, 30))
        wait = rng.uniform(ceiling / 2, ceiling)
        return max(wait, min(fault.retry_after_seconds or 0.0, self.longest_asked_seconds))

    def _limit(self, fault: Fault) -> int:
        most = self._most(fault)
        return min(most, STALLS) if fault.code == Stalled.code else most

    def _most(self, fault: Fault) -> int:
        if self.max_retries is None:
            return self.max_failures
        if fault.code in OUR_FAULTS:
            return max(self.max_failures, self.max_retries + 1)
        return self.max_retries + 1
