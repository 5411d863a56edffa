"""One pack, from claim to finish: stage, run, publish what came back, tell the store."""

import logging
import threading
import time
from collections.abc import Callable, Sequence

from refill.connectors.kit.contract import Job, Sink
from refill.domain.backfill import Backfill, Status
from refill.domain.errors import EngineUnavailable, Superseded, TransientError
from refill.domain.retry import RetryPolicy
from refill.domain.slice import Fault, Outcome, Receipt, Ticket
from refill.logs import about
from refill.packs.engine import Engine
from refill.packs.faults import failure, fault_of
from refill.packs.pack_pool import PackCancelled
from refill.packs.pool import Pool, sink_of
from refill.packs.watch import stalled
from refill.store.port import WorkStore
from refill.store.records import Finished
from refill.worker.assignments import TaskLimits, assign, draw_tickets, job_of
from refill.worker.ends import EndsFinder
from refill.worker.in_flight import InFlight, PackInFlight
from refill.worker.prepared import Prepared
from refill.worker.store_retry import retry_store

log = logging.getLogger(__name__)

DYING_SECONDS = 1.0


class PackRunner:
    """Used by all slots at once; keeps nothing between packs."""

    def __init__(
        self,
        *,
        store: WorkStore,
        engine: Engine,
        ends: EndsFinder,
        pool: Pool,
        prepared: Prepared,
        in_flight: InFlight,
        policy: RetryPolicy,
        limits: TaskLimits,
        abandoned: threading.Event,
        on_sealable: Callable[[], None],
        on_step: Callable[[str], None],
        on_task_step: Callable[[str, int], None] | None = None,
    ) -> None:
        self._store = store
        self._engine = engine
        self._ends = ends
        self._pool = pool
        self._prepared = prepared
        self._in_flight = in_flight
        self._policy = policy
        self._limits = limits
        self._abandoned = abandoned
        self._on_sealable = on_sealable
        self._on_step = on_step
        self._on_task_step = on_task_step

    def run(self, held: PackInFlight) -> Finished | None:
        """None when the pack was given up: its slices went back, or somebody else has them."""
        try:
            self._on_step("after_claim")
            receipts = self._execute(held)
            if held.abandoned:
                return None  # somebody else has told the store
            if held.engine_died:
                self._suspect(held)
                return None
            if held.given_up:
                self._release(held)
                return None
            return self._finish(held, receipts)
        finally:
            if not held.abandoned:
                self._in_flight.remove_pack(held)

    def _execute(self, held: PackInFlight) -> list[Receipt]:
        pack = held.pack
        tickets = draw_tickets(pack.slices)
        try:
            ends = self._ends.find(pack.backfill)
            self._prepared.ensure(pack.backfill, ends)
            job = job_of(pack.backfill)
            with sink_of(self._pool, ends.sink, ends.sink_options, ends.context) as sink:
                places = sink.get().stage(job, tickets)
                staged = [
                    ticket.model_copy(update={"staging": place})
                    for ticket, place in zip(tickets, places, strict=True)
                ]
                if not self._engine.alive():
                    held.given_up = True  # it died before this began: nothing is to blame
                    return []
                held.move("run")
                receipts = self._engine.run(
                    assign(
                        pack,
                        ends,
                        staged,
                        limits=self._limits,
                        on_step=self._on_task_step,
                    )
                )
                if held.given_up or held.abandoned:
                    return receipts
                held.move("publish")
                self._on_step("before_publish")
                published = self._publish(sink.get(), job, staged, matched(staged, receipts))
                self._on_step("after_publish_before_finish")
                return published
        except (Exception, PackCancelled) as exc:
            held.engine_died |= held.stage == "run" and self._lost_engine(exc)
            error = stalled(self._limits.stall_seconds) if held.stalled else _said(exc)
            if not held.given_up and not held.abandoned:
                log.warning(
                    "pack failed: %s",
                    error,
                    exc_info=None if isinstance(error, TransientError) else exc,
                    extra=about("pack_failed", pack.backfill),
                )
            return [failure(ticket, error) for ticket in tickets]

    def _publish(
        self, sink: Sink, job: Job, tickets: Sequence[Ticket], receipts: Sequence[Receipt]
    ) -> list[Receipt]:
        """Only what a received receipt names becomes visible. What cannot be published has not
        been delivered."""
        pairs = list(zip(tickets, receipts, strict=True))
        done = [pair for pair in pairs if pair[1].outcome is Outcome.DONE]
        if not done:
            return list(receipts)
        try:
            sink.publish(job, done)
            return list(receipts)
        except Superseded as exc:
            if len(done) == 1:
                return [_unpublished(receipt, exc) for receipt in receipts]
        except Exception as exc:
            log.warning("publishing failed: %s", exc, extra={"action": "publish_failed"})
            return [_unpublished(receipt, exc) for receipt in receipts]
        # one of them was taken over: publishing again, one at a time, tells which
        return [self._publish(sink, job, [ticket], [receipt])[0] for ticket, receipt in pairs]

    def _finish(self, held: PackInFlight, receipts: Sequence[Receipt]) -> Finished | None:
        if not self._in_flight.finish(held):
            return None
        backfill = held.pack.backfill
        finished = retry_store(
            lambda: self._store.finish_slices(backfill.id, receipts, self._policy),
            abandoned=self._abandoned,
        )
        if finished.superseded:
            log.warning(
                "%d slices were taken over by a newer attempt",
                len(finished.superseded),
                extra=about("superseded", backfill),
            )
        if finished.sealable:
            self._on_sealable()
        _tell(backfill, receipts, finished)
        return finished

    def _lost_engine(self, exc: BaseException) -> bool:
        """A JVM's end is felt before it shows: the process is gone a moment after its socket."""
        if not isinstance(exc, EngineUnavailable):
            return False
        deadline = time.monotonic() + DYING_SECONDS
        while self._engine.alive():
            if time.monotonic() >= deadline or self._abandoned.wait(0.05):
                return False
        return True

    def _suspect(self, held: PackInFlight) -> None:
        count = retry_store(
            lambda: self._store.suspect_slices(held.leases, self._policy),
            abandoned=self._abandoned,
        )
        log.warning(
            "%d slices ran when the engine died",
            count,
            extra=about("suspected", held.pack.backfill),
        )

    def _release(self, held: PackInFlight) -> None:
        count = retry_store(
            lambda: self._store.release_slices(held.leases), abandoned=self._abandoned
        )
        log.info("%d slices handed back", count, extra=about("released", held.pack.backfill))


def matched(tickets: Sequence[Ticket], receipts: Sequence[Receipt]) -> list[Receipt]:
    """One receipt per ticket, of that very attempt; a ticket without one was lost by Spark."""
    by_lease = {(receipt.slice_id, receipt.attempt): receipt for receipt in receipts}
    lost = EngineUnavailable("Spark returned no receipt for the slice; it is tried again.")
    return [
        by_lease.get((ticket.slice_id, ticket.attempt)) or failure(ticket, lost)
        for ticket in tickets
    ]


def _said(exc: BaseException) -> Exception:
    if isinstance(exc, Exception):
        return exc
    return EngineUnavailable("The pack was cut short; its slices are tried again.")


def _unpublished(receipt: Receipt, exc: Exception) -> Receipt:
    """Nothing of it became visible, whatever was staged."""
    if receipt.outcome is not Outcome.DONE:
        return receipt
    nothing = receipt.model_copy(update={"rows_delivered": 0, "bytes_written": 0})
    if isinstance(exc, Superseded):
        return nothing.model_copy(update={"outcome": Outcome.SUPERSEDED})
    fault: Fault = fault_of(exc)
    return nothing.model_copy(update={"outcome": Outcome.FAILED, "fault": fault})


def _tell(backfill: Backfill, receipts: Sequence[Receipt], finished: Finished) -> None:
    for receipt in receipts:
        if receipt.fault is not None:
            log.warning(
                "slice %s failed: %s",
                receipt.slice_id,
                receipt.fault.message,
                extra={
                    **about("slice_failed", backfill),
                    "slice_id": receipt.slice_id,
                    "code": receipt.fault.code,
                },
            )
    done = [receipt for receipt in receipts if receipt.outcome is Outcome.DONE]
    log.info(
        "pack finished",
        extra={
            **about("pack_finished", backfill),
            "slices_done": len(done),
            "rows_delivered": sum(receipt.rows_delivered for receipt in done),
        },
    )
    if finished.status in (Status.COMPLETED, Status.FAILED, Status.CANCELLED):
        log.info("backfill is %s", finished.status.value, extra=about("backfill_ended", backfill))
