"""Slices whose end nobody heard of: which they are, and what their sink said of them."""

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from refill.domain.backfill import Status
from refill.domain.retry import RetryPolicy
from refill.domain.slice import Receipt, SliceState
from refill.store import changes
from refill.store.finishing import settle
from refill.store.part import Part
from refill.store.records import ClaimedSlice, Finished, Unsure
from refill.store.rows import backfill_of, dicts, slice_of, spec_of
from refill.store.tables import WAITS_FOR_SINK, among, backfills, slices, targets

_ACTIVE = (
    sa.select(backfills, WAITS_FOR_SINK.label("waits"))
    .where(
        among(backfills.c.status, Status.SCHEDULED, Status.RUNNING, Status.PAUSED),
        backfills.c.planned.is_(True),
    )
    .order_by(backfills.c.id)
)


class Reconciling(Part):
    def list_unsure(self, sink_types: Collection[str]) -> tuple[Unsure, ...]:
        with self._backend.read() as connection:
            rows = connection.execute(_ACTIVE).mappings().all()
            # few sinks are asked at all: the slices of the others need not be looked through
            asked = [row for row in rows if spec_of(row["spec"]).sink_type in sink_types]
            found = [(row, _attempted(connection, row)) for row in asked]
        return tuple(
            Unsure(backfill=backfill_of(row), slices=parts) for row, parts in found if parts
        )

    def record_delivered(self, backfill_id: int, receipts: Sequence[Receipt]) -> Finished:
        with self._backend.write() as connection:
            row = changes.lock(connection, backfill_id)
            now = self._backend.now(connection)
            # a delivery is no failure, so that any policy will do
            policy = RetryPolicy()
            return settle(
                connection, row, receipts, policy, self._rng, now, state=SliceState.PENDING
            )


def _attempted(connection: sa.Connection, row: sa.RowMapping) -> tuple[ClaimedSlice, ...]:
    query = (
        sa.select(slices, targets.c.fence)
        .join(targets, targets.c.key == slices.c.target)
        .where(
            slices.c.backfill_id == row["id"],
            among(slices.c.state, SliceState.PENDING),
            slices.c.attempt > 0,
        )
        .order_by(slices.c.index)
    )
    # while nothing is claimed, those that were handed back are asked about too: by the time they
    # are claimed, the sink may have forgotten them
    if row["status"] != Status.PAUSED.value and not row["waits"]:
        query = query.where(slices.c.error_code.is_not(None))
    return tuple(
        ClaimedSlice(slice=slice_of(part), fence=part["fence"])
        for part in dicts(connection.execute(query))
    )
