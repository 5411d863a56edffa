"""The last step of a backfill whose slices are all done: the sink makes it whole, or visible."""

from refill.domain.backfill import Backfill
from refill.packs.pool import Pool, sink_of
from refill.worker.assignments import job_of
from refill.worker.ends import EndsFinder


class Sealer:
    def __init__(self, ends: EndsFinder, pool: Pool) -> None:
        self._ends = ends
        self._pool = pool

    def seal(self, backfill: Backfill) -> None:
        """Safe to do again: a worker may die between the sink's last step and the store's."""
        ends = self._ends.find(backfill)
        with sink_of(self._pool, ends.sink, ends.sink_options, ends.context) as sink:
            sink.get().seal(job_of(backfill))
