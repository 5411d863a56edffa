"""Runs claims on a backfill as a whole, each in a thread of its own: to plan it, or to seal it."""

import logging
import threading
from collections.abc import Callable, Collection

from refill.domain.errors import RefillError, StoreBusy, Superseded
from refill.domain.retry import RetryPolicy
from refill.logs import about
from refill.packs.faults import fault_of
from refill.packs.pack_pool import PackCancelled
from refill.packs.watch import stalled
from refill.store.port import WorkStore
from refill.store.records import BackfillClaim
from refill.worker.in_flight import ClaimInFlight, InFlight
from refill.worker.seats import Seats
from refill.worker.store_retry import retry_store

log = logging.getLogger(__name__)

# (worker, lease_seconds, teams that are not meant)
Claim = Callable[[str, float, Collection[int]], BackfillClaim | None]


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
        stall_seconds: float,
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
        self._stall_seconds = stall_seconds
        self._seats = Seats()

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
        full = self._seats.full_for()
        if full is None:
            return None
        claim = self._claim_from(self._worker, self._lease_seconds, full)
        if claim is not None:
            self._seats.take(claim.backfill.team_id)
            self._in_flight.add_claim(claim)
        return claim

    def _leave(self, claim: BackfillClaim) -> None:
        self._seats.leave(claim.backfill.team_id)

    def _run(self, claim: BackfillClaim) -> None:
        working = ClaimInFlight(claim, threading.get_ident(), lambda: self._leave(claim))
        self._in_flight.begin_claim(working)
        try:
            self._try(working)
        except Superseded as exc:
            log.info("claim lost: %s", exc.message, extra=about("superseded", claim.backfill))
        except StoreBusy:
            log.warning(
                "claim left to its lease: the store is away",
                extra=about("store_busy", claim.backfill),
            )
        finally:
            if self._in_flight.end_claim(working):
                self._leave(claim)

    def _try(self, working: ClaimInFlight) -> None:
        claim = working.claim
        try:
            self._work(claim)
        except (Superseded, StoreBusy):
            raise
        except (Exception, PackCancelled) as exc:
            if working.abandoned:
                return
            error = stalled(self._stall_seconds) if working.stalled else exc
            fault = fault_of(error)
            log.warning(
                "%s failed: %s",
                self.doing,
                fault.message,
                exc_info=None if isinstance(error, RefillError) else exc,
                extra={**about(f"{self.doing}_failed", claim.backfill), "code": fault.code},
            )
            retry_store(
                lambda: self._store.end_claim(claim, fault, self._policy),
                abandoned=self._abandoned,
            )
