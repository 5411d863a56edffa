"""Ends what makes no progress, or what nobody wants any more; and goes on without what cannot be
ended."""

import logging
import threading
import time
from collections.abc import Callable

from refill.domain.backfill import Status
from refill.domain.errors import NotFound, RefillError, StoreBusy
from refill.domain.retry import RetryPolicy
from refill.domain.slice import Fault, Outcome, Receipt
from refill.logs import about
from refill.packs.engine import Engine
from refill.packs.faults import fault_of
from refill.packs.pack_pool import ThreadPool
from refill.packs.watch import stalled
from refill.store.port import Store
from refill.worker.in_flight import ClaimInFlight, InFlight, PackInFlight

log = logging.getLogger(__name__)

CANCEL_SECONDS = 10.0  # what runs when its backfill is cancelled may still end well
LET_GO_SECONDS = 20.0  # longer than a task's own watch needs to end itself


class Stalls:
    def __init__(
        self,
        store: Store,
        engine: Engine,
        in_flight: InFlight,
        pool: ThreadPool,
        policy: RetryPolicy,
        *,
        stall_seconds: float,
        on_abandoned: Callable[[PackInFlight], None],
        cancel_seconds: float = CANCEL_SECONDS,
        let_go_seconds: float = LET_GO_SECONDS,
    ) -> None:
        self._store = store
        self._engine = engine
        self._in_flight = in_flight
        self._pool = pool
        self._policy = policy
        self._stall_seconds = stall_seconds
        self._on_abandoned = on_abandoned
        self._cancel_seconds = min(cancel_seconds, stall_seconds)
        self._let_go_seconds = min(let_go_seconds, stall_seconds)

    def run(self, ended: threading.Event) -> None:
        tick = min(2.0, self._stall_seconds / 10)
        while not ended.wait(tick):
            try:
                self.look()
            except StoreBusy:
                continue  # soon again
            except Exception:
                log.exception("the watch stumbled", extra={"action": "stumbled"})

    def look(self) -> None:
        now = time.monotonic()
        for working in self._in_flight.working():
            if working.cut_at is None:
                if now - working.since >= self._stall_seconds:
                    working.stalled, working.cut_at = True, now
                    self._pool.cancel(working.thread)
            elif now - working.cut_at >= self._let_go_seconds:
                self._abandon_claim(working)
        for held in self._in_flight.packs():
            if held.finishing:
                continue
            if held.cut_at is None:
                self._watch(held, now)
            elif now - held.cut_at >= self._let_go_seconds:
                self._abandon_pack(held)

    def _watch(self, held: PackInFlight, now: float) -> None:
        if held.given_up:
            held.cut_at = now  # cancelled by whoever gave it up
        elif now - held.since >= self._cancel_seconds and self._is_cancelled(held):
            held.given_up = True
            self._cut(held, now)
        elif self._stands_still(held, now):
            held.stalled = True
            self._cut(held, now)

    def _stands_still(self, held: PackInFlight, now: float) -> bool:
        limit = self._stall_seconds
        if held.stage == "run":
            moved = self._engine.progress(held.pack.id)
            if moved is None:
                return False  # its own process sees to it
            if moved != held.moved:
                held.moved, held.moved_at = moved, now
            # the task's own watch comes first: it knows which slice it was
            limit += self._let_go_seconds
        return now - held.moved_at >= limit

    def _is_cancelled(self, held: PackInFlight) -> bool:
        backfill = held.pack.backfill
        try:
            found = self._store.get_backfill(backfill.team_id, backfill.id)
        except NotFound:
            return True
        return found.status is Status.CANCELLED

    def _cut(self, held: PackInFlight, now: float) -> None:
        held.cut_at = now
        log.warning(
            "pack %s is ended: %s",
            held.pack.id,
            "its backfill was cancelled" if held.given_up else "it makes no progress",
            extra=about("pack_cut", held.pack.backfill),
        )
        try:
            self._engine.cancel(held.pack.id)
        except RefillError as exc:
            log.warning("cancel failed: %s", exc.message, extra={"action": "cancel_failed"})
        self._pool.cancel(held.thread)

    def _abandon_pack(self, held: PackInFlight) -> None:
        if not self._in_flight.abandon(held):
            return
        log.error(
            "pack %s cannot be ended; its slot goes on without it",
            held.pack.id,
            extra=about("pack_abandoned", held.pack.backfill),
        )
        self._on_abandoned(held)
        if held.stalled:
            receipts = [
                Receipt(slice_id=one, attempt=attempt, outcome=Outcome.FAILED, fault=self._fault())
                for one, attempt in held.leases
            ]
            self._store.finish_slices(held.pack.backfill.id, receipts, self._policy)
        else:
            self._store.release_slices(held.leases)
        self._in_flight.remove_pack(held)

    def _abandon_claim(self, working: ClaimInFlight) -> None:
        if not self._in_flight.abandon(working):
            return
        claim = working.claim
        log.error(
            "the claim's thread cannot be ended; others go on without it",
            extra=about("claim_abandoned", claim.backfill),
        )
        working.free()
        self._store.end_claim(claim, self._fault(), self._policy)

    def _fault(self) -> Fault:
        return fault_of(stalled(self._stall_seconds))
