"""The last step of a backfill whose slices are all done: what was delivered is looked at again, and
the sink makes it whole, or visible."""

from collections.abc import Iterator

from refill.connectors.kit.contract import Job, Sink
from refill.domain.backfill import Backfill
from refill.domain.errors import DeliveryLost
from refill.domain.slice import Outcome, Receipt, Slice, SliceState
from refill.packs.faults import fault_of
from refill.packs.pool import Pool, sink_of
from refill.store.port import BackfillStore
from refill.worker.assignments import job_of
from refill.worker.ends import EndsFinder

_LOOKED_AT_ONCE = 1000
_LOST = DeliveryLost(
    "What it had delivered was not there any more when the backfill was to end; it is delivered "
    "again. See who removes it at the destination."
)


class Sealer:
    def __init__(self, store: BackfillStore, ends: EndsFinder, pool: Pool) -> None:
        self._store = store
        self._ends = ends
        self._pool = pool

    def seal(self, backfill: Backfill) -> list[Receipt]:
        """Receipts of slices whose delivery is lost; without any, it is sealed. Safe to do again: a
        worker may die between the sink's last step and the store's."""
        ends, job = self._ends.find(backfill), job_of(backfill)
        with sink_of(self._pool, ends.sink, ends.sink_options, ends.context) as sink:
            lost = list(self._lost(sink.get(), job))
            if not lost:
                sink.get().seal(job)
            return lost

    def _lost(self, sink: Sink, job: Job) -> Iterator[Receipt]:
        for slices in self._delivered(job.backfill_id):
            for part in sink.missing(job, slices):
                yield Receipt(
                    slice_id=part.id,
                    attempt=part.attempt,
                    outcome=Outcome.FAILED,
                    fault=fault_of(_LOST),
                )

    def _delivered(self, backfill_id: int) -> Iterator[tuple[Slice, ...]]:
        cursor = None
        while True:
            page = self._store.list_slices(
                backfill_id,
                states={SliceState.COMPLETED},
                limit=_LOOKED_AT_ONCE,
                cursor=cursor,
            )
            yield page.items
            if page.next_cursor is None:
                return
            cursor = page.next_cursor
