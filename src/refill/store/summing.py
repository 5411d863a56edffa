"""Counters: summed from the slices, or as they were frozen."""

from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa

from refill.domain.backfill import CountedBackfill, Counters
from refill.domain.slice import SliceState
from refill.store.rows import AnyRow, counted_of, counters_of
from refill.store.tables import slices


def _count(state: SliceState) -> Any:
    return sa.func.sum(sa.case((slices.c.state == state.value, 1), else_=0))


def _sum(column: str) -> Any:
    # PostgreSQL's sum of bigints is numeric
    return sa.cast(sa.func.sum(slices.c[column]), sa.BigInteger).label(column)


_RUNNING_PACK = sa.case((slices.c.state == SliceState.RUNNING.value, slices.c.pack))
_COUNTERS = (
    sa.func.count().label("slices_total"),
    _count(SliceState.PENDING).label("slices_pending"),
    _count(SliceState.RUNNING).label("slices_claimed"),
    sa.func.count(sa.distinct(_RUNNING_PACK)).label("slices_running"),
    _count(SliceState.COMPLETED).label("slices_completed"),
    _count(SliceState.FAILED).label("slices_failed"),
    _count(SliceState.CANCELLED).label("slices_cancelled"),
    _sum("rows_read"),
    _sum("rows_delivered"),
    _sum("rows_filtered"),
    _sum("rows_rejected"),
    _sum("bytes_written"),
)
_NAMES = tuple(column.name for column in _COUNTERS)
_BY_BACKFILL = (
    sa.select(slices.c.backfill_id, *_COUNTERS)
    .where(slices.c.backfill_id.in_(sa.bindparam("ids", expanding=True)))
    .group_by(slices.c.backfill_id)
)


def sum_counters(connection: sa.Connection, ids: Collection[int]) -> dict[int, Counters]:
    """One grouped query for all of them; a backfill without slices is left out."""
    if not ids:
        return {}
    rows = connection.execute(_BY_BACKFILL, {"ids": list(ids)}).mappings()
    return {row["backfill_id"]: Counters(**{name: row[name] for name in _NAMES}) for row in rows}


def backfills_of(connection: sa.Connection, rows: Sequence[AnyRow]) -> list[CountedBackfill]:
    """Records with their counters."""
    summed = sum_counters(connection, [row["id"] for row in rows if row["counters"] is None])
    return [
        counted_of(
            row,
            counters_of(row["counters"])
            if row["counters"] is not None
            else summed.get(row["id"], Counters()),
        )
        for row in rows
    ]
