"""Runs claims on a backfill as a whole, each in a thread of its own: to plan it, or to seal it."""

import logging
import threading
from collections.abc import Callable

from refill.domain.errors import RefillError, StoreBusy, Superseded
from refill.domain.retry import RetryPolicy
from refill.logs import about
from refill.packs.faults import fault_of
from refill.store.port import WorkStore
from refill.store.records import BackfillClaim
from refill.worker.in_flight import InFlight
from refill.worker.store_retry import retry_store

log = logging.getLogger(__name__)

AT_ONCE = 4  # one system that is slow to answer must not hold up the others

Claim = Callable[[str, float], BackfillClaim | None]  # (worker, lease_seconds)


class ClaimRunner:
    """`work` does what was claimed and tells the store; what it raises fails the claim."""

    def __init__(
        self,
        doing: str,  # "plan", "seal": for the log
        claim: Claim,
        work: Callable[[BackfillClaim], None],
        *,
        store: WorkStore,
        in_flight: InFlight,
        policy: RetryPolicy,
        worker: str,
        lease_seconds: float,
        abandoned: threading.Event,
    ) -> None:
        self.doing = doing
        self._claim_from = claim
        self._work = work
        self._store = store
        self._in_flight = in_flight
        self._policy = policy
        self._worker = worker
        self._lease_seconds = lease_seconds
        self._abandoned = abandoned
        self._free = threading.BoundedSemaphore(AT_ONCE)

    def look(self) -> bool:
        """Claims at most one backfill and begins to work on it; False: there was nothing to do,
        or nobody free to do it."""
        claim = self._claim()
        if claim is None:
            return False
        name = f"{self.doing}-{claim.backfill.id}"
        threading.Thread(target=self._run, args=(claim,), name=name, daemon=True).start()
        return True

    def _claim(self) -> BackfillClaim | None:
        if not self._free.acquire(blocking=False):
            return None
        claim: BackfillClaim | None = None
        try:
            claim = self._claim_from(self._worker, self._lease_seconds)
        finally:
            if claim is None:
                self._free.release()
        if claim is not None:
            self._in_flight.add_claim(claim)
        return claim

    def _run(self, claim: BackfillClaim) -> None:
        try:
            self._try(claim)
        except Superseded as exc:
            log.info("claim lost: %s", exc.message, extra=about("superseded", claim.backfill))
        except StoreBusy:
            log.warning(
                "claim left to its lease: the store is away",
                extra=about("store_busy", claim.backfill),
            )
        finally:
            self._in_flight.remove_claim(claim)
            self._free.release()

    def _try(self, claim: BackfillClaim) -> None:
        try:
            self._work(claim)
        except (Superseded, StoreBusy):
            raise
        except Exception as exc:
            fault = fault_of(exc)
            log.warning(
                "%s failed: %s",
                self.doing,
                fault.message,
                exc_info=None if isinstance(exc, RefillError) else exc,
                extra={**about(f"{self.doing}_failed", claim.backfill), "code": fault.code},
            )
            retry_store(
                lambda: self._store.end_claim(claim, fault, self._policy),
                abandoned=self._abandoned,
            )
