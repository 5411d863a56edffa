"""Takes backfills as a whole: plans new ones, seals those that are done, several side by side."""

import logging
import threading
from collections.abc import Callable

from refill.domain.errors import RefillError, StoreBusy, Superseded
from refill.domain.retry import RetryPolicy
from refill.engine.task import fault_of
from refill.logs import about
from refill.store.port import BackfillClaim, WorkStore
from refill.worker.held import Held
from refill.worker.persistence import insist
from refill.worker.planner import Planner

log = logging.getLogger(__name__)

AT_ONCE = 4  # one source that is slow to answer must not hold up the others


class Clerk:
    def __init__(
        self,
        store: WorkStore,
        planner: Planner,
        held: Held,
        policy: RetryPolicy,
        *,
        worker: str,
        lease_seconds: float,
        abandoned: threading.Event,
        on_planned: Callable[[], None],
    ) -> None:
        self._store = store
        self._planner = planner
        self._held = held
        self._policy = policy
        self._worker = worker
        self._lease_seconds = lease_seconds
        self._abandoned = abandoned
        self._on_planned = on_planned
        self._free = threading.BoundedSemaphore(AT_ONCE)

    def look(self) -> bool:
        """Claims at most one of each kind and works on it in a thread; False: nothing to do."""
        plan = self._claim(self._store.claim_plan)
        if plan is not None:
            self._begin(self._plan, plan)
        seal = self._claim(self._store.claim_seal)
        if seal is not None:
            self._begin(self._seal, seal)
        return plan is not None or seal is not None

    def _claim(
        self, claim_from: Callable[[str, float], BackfillClaim | None]
    ) -> BackfillClaim | None:
        if not self._free.acquire(blocking=False):
            return None
        claim: BackfillClaim | None = None
        try:
            claim = claim_from(self._worker, self._lease_seconds)
        finally:
            if claim is None:
                self._free.release()
        if claim is not None:
            self._held.add_claim(claim)
        return claim

    def _begin(self, work: Callable[[BackfillClaim], None], claim: BackfillClaim) -> None:
        def run() -> None:
            try:
                work(claim)
            except Superseded as exc:
                log.info(
                    "claim lost: %s",
                    exc.message,
                    extra=about("superseded", claim.backfill),
                )
            except StoreBusy:
                log.warning(
                    "claim left to its lease: the store is away",
                    extra=about("store_busy", claim.backfill),
                )
            finally:
                self._held.remove_claim(claim)
                self._free.release()

        threading.Thread(target=run, name=f"clerk-{claim.backfill.id}", daemon=True).start()

    def _plan(self, claim: BackfillClaim) -> None:
        try:
            slices = self._planner.plan(claim, lambda call: insist(call, abandoned=self._abandoned))
        except (Superseded, StoreBusy):
            raise
        except Exception as exc:
            self._fail(claim, exc, "plan_failed")
            return
        log.info("planned %d slices", slices, extra=about("planned", claim.backfill))
        self._on_planned()

    def _seal(self, claim: BackfillClaim) -> None:
        try:
            self._planner.seal(claim.backfill)
        except (Superseded, StoreBusy):
            raise
        except Exception as exc:
            self._fail(claim, exc, "seal_failed")
            return
        insist(lambda: self._store.end_claim(claim, None, self._policy), abandoned=self._abandoned)
        log.info("sealed", extra=about("sealed", claim.backfill))

    def _fail(self, claim: BackfillClaim, exc: Exception, action: str) -> None:
        fault = fault_of(exc)
        log.warning(
            "%s: %s",
            action.replace("_", " "),
            fault.message,
            exc_info=None if isinstance(exc, RefillError) else exc,
            extra={**about(action, claim.backfill), "code": fault.code},
        )
        insist(lambda: self._store.end_claim(claim, fault, self._policy), abandoned=self._abandoned)
