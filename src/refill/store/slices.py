"""Reading slices: of a backfill, as runs of a transfer, their dates and rejects."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import sqlalchemy as sa

from refill.domain.backfill import CountedBackfill, Origin
from refill.domain.errors import Invalid
from refill.domain.pipeline import Kind
from refill.domain.slice import Reject, Slice, SliceState
from refill.store import changes
from refill.store.cursor import decode, page_of
from refill.store.part import Part
from refill.store.records import Page
from refill.store.rows import dicts, from_json, slice_of, to_datetime, to_micros
from refill.store.tables import backfills, rejects, slices

SORT_FIELDS: dict[str, sa.Column[Any]] = {
    "id": slices.c.id,
    "status": slices.c.state,
    "created_time": slices.c.queued_at,
    "started_time": slices.c.started_at,
    "ended_time": slices.c.ended_at,
    "data_date": slices.c.date,
    "total_rows": slices.c.rows_delivered,
    "total_duration": slices.c.seconds,
}


class Slices(Part):
    def list_slices(
        self,
        backfill_id: int,
        *,
        states: Collection[SliceState] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[Slice]:
        query = (
            sa.select(slices).where(slices.c.backfill_id == backfill_id).order_by(slices.c.index)
        )
        if states is not None:
            query = query.where(slices.c.state.in_(sorted({state.value for state in states})))
        if cursor is not None:
            query = query.where(slices.c.index > decode(cursor))
        if limit is not None:
            query = query.limit(limit + 1)
        with self._backend.read() as connection:
            rows = dicts(connection.execute(query))
        return page_of(
            rows, limit, lambda row: int(row["index"]), lambda kept: [slice_of(r) for r in kept]
        )

    def list_rejects(
        self, backfill_id: int, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[tuple[Slice, Reject]]:
        query = (
            sa.select(rejects).where(rejects.c.backfill_id == backfill_id).order_by(rejects.c.id)
        )
        if cursor is not None:
            query = query.where(rejects.c.id > decode(cursor))
        if limit is not None:
            query = query.limit(limit + 1)
        with self._backend.read() as connection:
            rows = connection.execute(query).mappings().all()
            of = sa.select(slices).where(slices.c.id.in_({row["slice_id"] for row in rows}))
            owners = {row["id"]: slice_of(row) for row in connection.execute(of).mappings()}

        def pairs(kept: Sequence[sa.RowMapping]) -> list[tuple[Slice, Reject]]:
            return [(owners[row["slice_id"]], _reject(row)) for row in kept]

        return page_of(rows, limit, lambda row: int(row["id"]), pairs)

    def list_runs(
        self,
        team_id: int,
        transfer_id: int,
        *,
        start: datetime,
        end: datetime,
        issues_only: bool = False,
        sort_field: str = "created_time",
        descending: bool = True,
        limit: int = 1000,
        offset: int = 0,
    ) -> tuple[tuple[Slice, Origin], ...]:
        column = SORT_FIELDS.get(sort_field)
        if column is None:
            raise Invalid.of("sort_field", f"must be one of {', '.join(SORT_FIELDS)}")
        turn = sa.desc if descending else sa.asc
        # what has no such time yet comes last on the one store and first on the other otherwise
        order = (column.is_(None), turn(column), turn(slices.c.id))
        query = (
            sa.select(slices, backfills.c.origin)
            .join(backfills, backfills.c.id == slices.c.backfill_id)
            .where(
                backfills.c.team_id == team_id,
                *_of_transfer(transfer_id),
                slices.c.queued_at >= to_micros(start),
                slices.c.queued_at <= to_micros(end),
            )
            .order_by(*order)
            .limit(limit)
            .offset(offset)
        )
        if issues_only:
            query = query.where(slices.c.state == SliceState.FAILED.value)
        with self._backend.read() as connection:
            rows = dicts(connection.execute(query))
            return tuple((slice_of(row), Origin(row["origin"])) for row in rows)

    def get_run(self, team_id: int, run_id: int) -> tuple[Slice, CountedBackfill]:
        query = (
            sa.select(slices)
            .join(backfills, backfills.c.id == slices.c.backfill_id)
            .where(
                slices.c.id == run_id,
                backfills.c.team_id == team_id,
                backfills.c.kind == Kind.TRANSFER.value,
            )
        )
        with self._backend.read() as connection:
            run = slice_of(self._one(connection, query, "run", run_id))
            return run, changes.load(connection, run.backfill_id)

    def completed_dates(self, transfer_id: int) -> Mapping[date, int]:
        with self._backend.read() as connection:
            rows = connection.execute(newest_completed(str(transfer_id)))
            return {date.fromisoformat(row.date): row.rows_delivered for row in rows}

    def last_run_days(self, team_id: int) -> Mapping[int, date]:
        last = sa.func.max(sa.func.coalesce(backfills.c.ended_at, backfills.c.started_at))
        query = (
            sa.select(backfills.c.pipeline_id, last.label("last"))
            .where(
                backfills.c.team_id == team_id,
                backfills.c.kind == Kind.TRANSFER.value,
                backfills.c.started_at.is_not(None),
            )
            .group_by(backfills.c.pipeline_id)
        )
        with self._backend.read() as connection:
            return {
                int(row.pipeline_id): to_datetime(row.last).date()
                for row in connection.execute(query)
            }

    def failed_dates(self, transfer_id: int) -> frozenset[date]:
        """A run that was cancelled says nothing of its date."""
        query = (
            sa.select(slices.c.date, slices.c.state)
            .join(backfills, backfills.c.id == slices.c.backfill_id)
            .where(
                *_of_transfer(transfer_id),
                slices.c.date.is_not(None),
                slices.c.state != SliceState.CANCELLED.value,
            )
            # the last word has what ended last; what has not ended yet comes after it
            .order_by(slices.c.ended_at.is_(None), slices.c.ended_at, slices.c.id)
        )
        with self._backend.read() as connection:
            last = {row.date: row.state for row in connection.execute(query)}
        return frozenset(
            date.fromisoformat(day) for day, state in last.items() if state == SliceState.FAILED
        )


def newest_completed(transfer_id: str) -> Any:
    """Completed runs of a transfer, oldest first: of each date the last one counts."""
    return (
        sa.select(slices.c.date, slices.c.rows_delivered, slices.c.id)
        .join(backfills, backfills.c.id == slices.c.backfill_id)
        .where(
            *_of_transfer(transfer_id),
            slices.c.date.is_not(None),
            slices.c.state == SliceState.COMPLETED.value,
        )
        .order_by(slices.c.ended_at, slices.c.id)
    )


def _of_transfer(transfer_id: int | str) -> tuple[Any, ...]:
    return (
        backfills.c.kind == Kind.TRANSFER.value,
        backfills.c.pipeline_id == str(transfer_id),
    )


def _reject(row: sa.RowMapping) -> Reject:
    return Reject(key=tuple(from_json(row["key"])), reason=row["reason"], detail=row["detail"])
