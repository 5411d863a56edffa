"""Backfills: creating, finding, pausing, resuming, cancelling, retrying."""

from collections.abc import Collection
from datetime import date
from typing import Any

import sqlalchemy as sa

from refill.domain.backfill import CountedBackfill, Counters, Origin, Status
from refill.domain.errors import Conflict, Invalid, NotFound
from refill.domain.pipeline import Kind
from refill.domain.slice import SliceState
from refill.store import changes
from refill.store.cursor import decode, page_of
from refill.store.part import Part
from refill.store.records import NewBackfill, Page
from refill.store.rows import backfill_of, counted_of, dicts, from_json, spec_to_json, to_json
from refill.store.summing import backfills_of
from refill.store.tables import backfills, slices
from refill.store.tables import holds as held

_RACES = 5  # how often a holder may vanish between the refusal and the look at it
_FRESH: dict[str, Any] = {
    **{"state": SliceState.PENDING.value, "failures": 0, "suspicions": 0, "not_before": 0},
    **{"error": None, "error_code": None, "started_at": None, "ended_at": None},
    **{"rows_read": 0, "rows_delivered": 0, "rows_filtered": 0, "rows_rejected": 0},
    **{"bytes_written": 0, "seconds": 0.0},
}


class Backfills(Part):
    def insert_backfill(self, new: NewBackfill) -> CountedBackfill:
        """A second time with the same uid gives the first: the caller saw no answer, and asks
        again."""
        for _ in range(_RACES):
            try:
                with self._backend.write() as connection:
                    now = self._backend.now(connection)
                    query = backfills.insert().values(_values(new, now)).returning(backfills)
                    row = connection.execute(query).mappings().one()
                    changes.take_holds(connection, row, new.holds)
                    return counted_of(row, Counters())
            except sa.exc.IntegrityError:
                earlier = self._by_uid(new.team_id, new.uid)
                if earlier is not None:
                    return earlier
                holder = self.find_holder(new.kind, new.pipeline_id, new.holds)
                if holder is not None:
                    raise _held(holder) from None
        raise Conflict("Another backfill of the same pipeline came in between: try again.")

    def get_backfill(self, team_id: int, backfill_id: int) -> CountedBackfill:
        return self._get(backfills.c.team_id == team_id, backfills.c.id == backfill_id)

    def get_backfill_by_uid(self, team_id: int, uid: str) -> CountedBackfill:
        return self._get(backfills.c.team_id == team_id, backfills.c.uid == uid)

    def latest_backfill(self, team_id: int, kind: Kind, pipeline_id: str) -> CountedBackfill | None:
        page = self.list_backfills(team_id, kind=kind, pipeline_id=pipeline_id, limit=1)
        return page.items[0] if page.items else None

    def list_backfills(
        self,
        team_id: int,
        *,
        kind: Kind | None = None,
        pipeline_id: str | None = None,
        statuses: Collection[Status] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[CountedBackfill]:
        query = (
            sa.select(backfills)
            .where(backfills.c.team_id == team_id, backfills.c.origin != Origin.SCHEDULE.value)
            .order_by(backfills.c.id.desc())
        )
        if kind is not None:
            query = query.where(backfills.c.kind == kind.value)
        if pipeline_id is not None:
            query = query.where(backfills.c.pipeline_id == pipeline_id)
        if statuses is not None:
            query = query.where(backfills.c.status.in_(sorted({s.value for s in statuses})))
        if cursor is not None:
            query = query.where(backfills.c.id < decode(cursor))
        if limit is not None:
            query = query.limit(limit + 1)
        with self._backend.read() as connection:
            rows = dicts(connection.execute(query))
            return page_of(
                rows, limit, lambda row: int(row["id"]), lambda kept: backfills_of(connection, kept)
            )

    def find_holder(
        self, kind: Kind, pipeline_id: str, holds: Collection[str]
    ) -> CountedBackfill | None:
        if not holds:
            return None
        query = (
            sa.select(backfills)
            .join(held, held.c.backfill_id == backfills.c.id)
            .where(
                held.c.kind == kind.value,
                held.c.pipeline_id == pipeline_id,
                held.c.hold.in_(sorted(holds)),
            )
            .order_by(backfills.c.id)
            .limit(1)
        )
        with self._backend.read() as connection:
            found = backfills_of(connection, connection.execute(query).mappings().all())
            return found[0] if found else None

    def pause_backfill(self, team_id: int, backfill_id: int) -> CountedBackfill:
        with self._backend.write() as connection:
            row = changes.lock(connection, backfill_id, team_id)
            paused = backfill_of(row).with_status(Status.PAUSED)
            now = self._backend.now(connection)
            changes.update(connection, paused.id, now, status=paused.status.value, paused_at=now)
            return changes.load(connection, backfill_id)

    def resume_backfill(self, team_id: int, backfill_id: int) -> CountedBackfill:
        with self._backend.write() as connection:
            row = changes.lock(connection, backfill_id, team_id)
            if row["status"] == Status.FAILED.value:
                raise Conflict(
                    "A backfill that is failed cannot be resumed: retry it.", field="state"
                )
            resumed = backfill_of(row).with_status(_waiting(row))
            now = self._backend.now(connection)
            idle = changes.idled(row, row["paused_at"], now)
            values = {"status": resumed.status.value, "paused_at": None, "idle": idle}
            changes.update(connection, resumed.id, now, **values)
            return changes.load(connection, backfill_id)

    def cancel_backfill(
        self, team_id: int, backfill_id: int, user_id: int | None
    ) -> CountedBackfill:
        with self._backend.write() as connection:
            row = changes.lock(connection, backfill_id, team_id)
            changes.cancel(connection, row, user_id, self._backend.now(connection))
            return changes.load(connection, backfill_id)

    def retry_backfill(
        self, team_id: int, backfill_id: int, dates: Collection[date] | None = None
    ) -> CountedBackfill:
        for _ in range(_RACES):
            wanted: set[str] = set()
            try:
                with self._backend.write() as connection:
                    row = changes.lock(connection, backfill_id, team_id)
                    wanted = self._retry(connection, row, dates)
                    changes.take_holds(connection, row, wanted)
                    return changes.load(connection, backfill_id)
            except sa.exc.IntegrityError:
                holder = self.find_holder(Kind(row["kind"]), row["pipeline_id"], wanted)
                if holder is not None:
                    raise _held(holder) from None
        raise Conflict("Another backfill of the same pipeline came in between: try again.")

    def _retry(
        self, connection: sa.Connection, row: sa.RowMapping, dates: Collection[date] | None
    ) -> set[str]:
        """What it has to hold again."""
        retried = backfill_of(row)
        if retried.status is not Status.FAILED:
            raise Conflict(
                f"A backfill that is {retried.status} cannot be retried: only a failed one can.",
                field="state",
                other=retried.status,
            )
        retried = retried.with_status(_waiting(row))
        wanted = set(from_json(row["holds"]))
        failed = _failed_slices(connection, row, dates) if row["planned"] else {}
        now = self._backend.now(connection)
        if not row["planned"]:
            # what stands for its dates until it is planned
            connection.execute(slices.delete().where(slices.c.backfill_id == retried.id))
        elif failed:
            ids = sorted(failed)
            connection.execute(slices.update().where(slices.c.id.in_(ids)).values(_FRESH))
            if all(failed.values()):
                # dates that are done already are not covered again
                wanted &= set(failed.values())
        changes.update(
            connection,
            retried.id,
            now,
            status=retried.status.value,
            idle=changes.idled(row, row["ended_at"], now),
            counters=None,
            failures=0,
            not_before=0,
            error=None,
            error_code=None,
            ended_at=None,
            failed_at=None,
        )
        return wanted

    def _get(self, *conditions: Any) -> CountedBackfill:
        with self._backend.read() as connection:
            query = sa.select(backfills).where(*conditions)
            found = backfills_of(connection, connection.execute(query).mappings().all())
        if not found:
            raise NotFound("backfill")
        return found[0]

    def _by_uid(self, team_id: int, uid: str) -> CountedBackfill | None:
        try:
            return self.get_backfill_by_uid(team_id, uid)
        except NotFound:
            return None


def _waiting(row: sa.RowMapping) -> Status:
    """Where resuming and retrying lead."""
    return Status.SCHEDULED if row["planned"] else Status.CREATED


def _held(holder: CountedBackfill) -> Conflict:
    is_sinks = holder.kind is Kind.SINK
    what = f"table {holder.spec.read.name}" if is_sinks else "some of these dates"
    return Conflict(
        f"Backfill {holder.uid if is_sinks else holder.id} is {holder.status} and "
        f"covers {what}: wait for it to end, or cancel it.",
        other=holder,
    )


def _failed_slices(
    connection: sa.Connection, row: sa.RowMapping, dates: Collection[date] | None
) -> dict[int, str | None]:
    """Ids and dates of the slices to be tried again."""
    query = sa.select(slices.c.id, slices.c.date).where(
        slices.c.backfill_id == row["id"], slices.c.state == SliceState.FAILED.value
    )
    failed = {found.id: found.date for found in connection.execute(query)}
    if dates is not None:
        asked = {day.isoformat() for day in dates}
        unknown = sorted(asked - set(failed.values()))
        if unknown or not asked:
            raise Invalid.of(
                "dates",
                f"{', '.join(unknown[:10]) or 'an empty list'}: no failed run of this backfill has "
                "such a date",
            )
        failed = {id_: day for id_, day in failed.items() if day in asked}
    frozen = from_json(row["counters"] or "{}")
    if not failed and frozen.get("slices_failed"):
        raise Conflict("The failed slices are no longer kept: create a new backfill instead.")
    return failed


def _values(new: NewBackfill, now: int) -> dict[str, Any]:
    return {
        "uid": new.uid,
        "team_id": new.team_id,
        "kind": new.kind.value,
        "pipeline_id": new.pipeline_id,
        "pipeline_name": new.pipeline_name,
        "origin": new.origin.value,
        "status": Status.CREATED.value,
        "spec": spec_to_json(new.spec),
        "range_start": new.range_start and new.range_start.isoformat(),
        "range_end": new.range_end and new.range_end.isoformat(),
        "order": new.order.value,
        "max_concurrent": new.max_concurrent,
        "reason": new.reason,
        "slices_planned": new.slices_planned,
        "planned": False,
        "created_at": now,
        "created_user_id": new.created_user_id,
        "updated_at": now,
        "holds": to_json(sorted(new.holds)),
        "seals": new.seals,
    }
