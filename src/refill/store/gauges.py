"""Numbers for /metrics, from what is there now."""

from typing import Any

import sqlalchemy as sa

from refill.domain.backfill import Status
from refill.domain.slice import SliceState
from refill.store.part import Part
from refill.store.pipeline_gauges import read_pipelines
from refill.store.records import Gauges
from refill.store.tables import among, backfills, slices, tallies

_COMPLETED = slices.c.state == SliceState.COMPLETED.value
_SECONDS = sa.func.sum(sa.case((_COMPLETED, slices.c.seconds), else_=0.0))
_BY_STATUS = sa.select(backfills.c.status, sa.func.count()).group_by(backfills.c.status)
_BY_STATE = sa.select(
    slices.c.state,
    sa.func.count().label("slices"),
    *(
        sa.func.sum(slices.c[name]).label(name)
        for name in ("rows_read", "rows_delivered", "rows_rejected", "attempt", "failures")
    ),
    _SECONDS.label("seconds"),
).group_by(slices.c.state)


class GaugesReader(Part):
    def gauges(self) -> Gauges:
        with self._backend.read() as connection:
            now = self._backend.now(connection)
            statuses = {row[0]: int(row[1]) for row in connection.execute(_BY_STATUS)}
            states = connection.execute(_BY_STATE).mappings().all()
            lost = connection.execute(
                sa.select(tallies.c.value).where(tallies.c.name == "leases_lost")
            ).scalar()
            oldest = connection.execute(_oldest_waiting(now)).scalar()
            pipelines, left_out = read_pipelines(connection, now)

        def total(name: str) -> int:
            return sum(int(row[name]) for row in states)

        by_state = {row["state"]: int(row["slices"]) for row in states}
        return Gauges(
            backfills_by_status={status.value: statuses.get(status.value, 0) for status in Status},
            slices_by_state={state.value: by_state.get(state.value, 0) for state in SliceState},
            rows_read=total("rows_read"),
            rows_delivered=total("rows_delivered"),
            rows_rejected=total("rows_rejected"),
            attempts=total("attempt"),
            failures=total("failures"),
            leases_lost=int(lost or 0),
            slice_seconds=sum(float(row["seconds"]) for row in states),
            slices_completed=by_state.get(SliceState.COMPLETED.value, 0),
            pipelines=pipelines,
            pipelines_left_out=left_out,
            queue_age_seconds=0.0 if oldest is None else max(0.0, (now - oldest) / 1_000_000),
        )


def _oldest_waiting(now: int) -> Any:
    """When what waits longest was queued: backfills to be planned, slices that are due."""
    unplanned = sa.select(sa.func.min(backfills.c.created_at).label("since")).where(
        among(backfills.c.status, Status.CREATED), backfills.c.lease_until.is_(None)
    )
    first = (
        sa.select(slices.c.queued_at)
        .where(
            slices.c.backfill_id == backfills.c.id,
            among(slices.c.state, SliceState.PENDING),
            slices.c.not_before <= now,
        )
        .order_by(slices.c.index)
        .limit(1)
        .scalar_subquery()
    )
    pending = sa.select(sa.func.min(first).label("since")).where(
        among(backfills.c.status, Status.SCHEDULED, Status.RUNNING)
    )
    waiting = sa.union_all(unplanned, pending).subquery()
    return sa.select(sa.func.min(waiting.c.since))
