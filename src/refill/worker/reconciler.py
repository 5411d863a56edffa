"""Asks sinks what became of slices whose worker was lost, while their markers are still there.

A slice may have been delivered though nobody heard of it. Its next attempt finds that out, but a
paused backfill has none for as long as it is paused, and markers fade.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from refill.connectors.kit.contract import Connector, Sink
from refill.domain.backfill import Backfill
from refill.domain.errors import RefillError, StoreBusy
from refill.domain.slice import Outcome, Receipt, Ticket
from refill.logs import about
from refill.packs.pool import Pool, sink_of
from refill.packs.receipts import receipt_of
from refill.store.port import WorkStore
from refill.store.records import Unsure
from refill.worker.assignments import draw_tickets, job_of
from refill.worker.ends import EndsFinder

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
# nothing found is no proof: a cut-off attempt may commit as long as its transaction may live
FIRST_WAIT_SECONDS = 30.0
LONGEST_WAIT_SECONDS = 3600.0

Lease = tuple[int, int]  # slice id, attempt


@dataclass(frozen=True, slots=True)
class Asked:
    """When the sink is asked again about an attempt that it knew nothing of."""

    due: float
    wait: float


class Reconciler:
    """In a thread of its own: a sink that does not answer must hold up nobody else."""

    def __init__(
        self,
        store: WorkStore,
        ends: EndsFinder,
        pool: Pool,
        connectors: Mapping[str, Connector],
        *,
        on_sealable: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._ends = ends
        self._pool = pool
        self._sink_types = {name for name, each in connectors.items() if each.fading_markers}
        self._on_sealable = on_sealable
        self._clock = clock
        self._asked: dict[Lease, Asked] = {}

    def run(self, ended: threading.Event) -> None:
        while not ended.wait(LOOK_SECONDS):
            try:
                self.look(ended)
            except StoreBusy as exc:
                log.warning("the store is busy: %s", exc.message, extra={"action": "store_busy"})
            except Exception:
                log.exception("reconciling failed", extra={"action": "reconcile_failed"})

    def look(self, ended: threading.Event) -> None:
        found = self._store.list_unsure(self._sink_types)
        open_leases = {(each.slice.id, each.slice.attempt) for of in found for each in of.slices}
        self._asked = {lease: self._asked[lease] for lease in open_leases & self._asked.keys()}
        for unsure in found:
            self._reconcile(unsure, ended)

    def _reconcile(self, unsure: Unsure, ended: threading.Event) -> None:
        due = [ticket for ticket in draw_tickets(unsure.slices) if self._is_due(ticket)]
        if not due:
            return
        backfill = unsure.backfill
        try:
            ends = self._ends.find(backfill)
            with sink_of(self._pool, ends.sink, ends.sink_options, ends.context) as sink:
                for ticket in due:
                    if ended.is_set():
                        return
                    # before it is asked: one that cannot be told must not be in the way for ever
                    self._put_off(ticket)
                    self._ask(sink.get(), backfill, ticket)
        except StoreBusy:
            raise
        except RefillError as exc:
            for ticket in due:
                if self._is_due(ticket):
                    self._put_off(ticket)
            log.warning(
                "what was delivered cannot be told: %s",
                exc.message,
                extra=about("reconcile_failed", backfill),
            )

    def _ask(self, sink: Sink, backfill: Backfill, ticket: Ticket) -> None:
        (written,) = sink.delivered(job_of(backfill), [ticket])
        if written is None:
            return
        receipt = receipt_of(
            ticket,
            written,
            rows_read=0,
            rows_filtered=0,
            seconds=0.0,
            max_rejects=backfill.spec.max_rejects,
        )
        if receipt.outcome is Outcome.DONE:
            self._record(backfill, receipt)

    def _record(self, backfill: Backfill, receipt: Receipt) -> None:
        finished = self._store.record_delivered(backfill.id, [receipt])
        if finished.sealable:
            self._on_sealable()
        if finished.accepted:
            log.info(
                "slice %s was delivered by an attempt that was lost",
                receipt.slice_id,
                extra={**about("reconciled", backfill), "slice_id": receipt.slice_id},
            )

    def _is_due(self, ticket: Ticket) -> bool:
        asked = self._asked.get((ticket.slice_id, ticket.attempt))
        return asked is None or asked.due <= self._clock()

    def _put_off(self, ticket: Ticket) -> None:
        lease = (ticket.slice_id, ticket.attempt)
        before = self._asked.get(lease)
        wait = min(before.wait * 2, LONGEST_WAIT_SECONDS) if before else FIRST_WAIT_SECONDS
        self._asked[lease] = Asked(self._clock() + wait, wait)
