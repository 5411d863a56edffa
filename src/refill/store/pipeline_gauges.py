"""Numbers by sink and transfer, for those that were backfilled last."""

import sqlalchemy as sa

from refill.domain.backfill import ACTIVE, CountedBackfill
from refill.domain.pipeline import Kind
from refill.domain.progress import measure_progress
from refill.store.records import PipelineGauges
from refill.store.rows import to_datetime, to_micros
from refill.store.summing import backfills_of
from refill.store.tables import backfills, sinks, slices, transfers

MAX_PIPELINES = 200  # a label of which there may be any number fills a monitoring's memory

_THERE = sa.or_(
    sa.and_(
        backfills.c.kind == Kind.SINK.value,
        sa.exists().where(sinks.c.id == backfills.c.pipeline_id),
    ),
    sa.and_(
        backfills.c.kind == Kind.TRANSFER.value,
        sa.exists().where(sa.cast(transfers.c.id, sa.Text) == backfills.c.pipeline_id),
    ),
)
_NEWEST = (
    sa.select(sa.func.max(backfills.c.id).label("id"))
    .where(_THERE)
    .group_by(backfills.c.kind, backfills.c.pipeline_id)
)


def read_pipelines(connection: sa.Connection, now: int) -> tuple[tuple[PipelineGauges, ...], int]:
    """(those that were backfilled last, how many more there are)."""
    newest = list(connection.execute(_NEWEST).scalars())
    chosen = sorted(newest, reverse=True)[:MAX_PIPELINES]
    rows = connection.execute(sa.select(backfills).where(backfills.c.id.in_(chosen)))
    tries = (
        sa.select(slices.c.backfill_id, sa.func.sum(slices.c.failures))
        .where(slices.c.backfill_id.in_(chosen))
        .group_by(slices.c.backfill_id)
    )
    failed = {row[0]: int(row[1] or 0) for row in connection.execute(tries)}
    found = backfills_of(connection, rows.mappings().all())
    gauges = tuple(_gauges(each, failed.get(each.id, 0), now) for each in found)
    return gauges, len(newest) - len(chosen)


def _gauges(backfill: CountedBackfill, failures: int, now: int) -> PipelineGauges:
    lag = (now - to_micros(backfill.updated_at)) / 1_000_000 if backfill.status in ACTIVE else 0.0
    return PipelineGauges(
        team_id=backfill.team_id,
        kind=backfill.kind.value,
        name=backfill.pipeline_name,
        status=backfill.status.value,
        progress=measure_progress(backfill, to_datetime(now)).fraction,
        lag_seconds=max(0.0, lag),
        rows_rejected=backfill.counters.rows_rejected,
        slices_failed=backfill.counters.slices_failed,
        failures=failures,
    )
