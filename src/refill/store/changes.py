"""Changes of a backfill's state, within a transaction that holds its row.

Whoever changes a backfill or the state of its slices locks the backfill's row first, then slices,
then targets: one order everywhere, so that no two wait for each other.
"""

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from refill.domain.backfill import ACTIVE, CountedBackfill, Origin, Status
from refill.domain.errors import NotFound
from refill.domain.notice import EventType
from refill.domain.pipeline import Kind
from refill.domain.slice import SliceState
from refill.store.rows import backfill_of, counters_to_json, spec_of, to_json
from refill.store.summing import backfills_of, sum_counters
from refill.store.tables import backfills, events, holds, slices

UNLEASED: dict[str, Any] = {"worker": None, "lease_until": None}


def lock(connection: sa.Connection, backfill_id: int, team_id: int | None = None) -> sa.RowMapping:
    """The backfill's row, ours until the transaction ends."""
    query = sa.select(backfills).where(backfills.c.id == backfill_id).with_for_update()
    if team_id is not None:
        query = query.where(backfills.c.team_id == team_id)
    row = connection.execute(query).mappings().first()
    if row is None:
        raise NotFound("backfill", backfill_id)
    return row


def load(connection: sa.Connection, backfill_id: int) -> CountedBackfill:
    """The backfill as it is now."""
    query = sa.select(backfills).where(backfills.c.id == backfill_id)
    return backfills_of(connection, connection.execute(query).mappings().all())[0]


def update(connection: sa.Connection, backfill_id: int, now: int, **values: Any) -> None:
    query = backfills.update().where(backfills.c.id == backfill_id)
    connection.execute(query.values(updated_at=now, **values))


def take_holds(connection: sa.Connection, row: sa.RowMapping, wanted: Collection[str]) -> None:
    """IntegrityError when another has one of them. Sorted: two that want the same dates in
    another order would wait for each other."""
    if wanted:
        values = {
            "kind": row["kind"],
            "pipeline_id": row["pipeline_id"],
            "backfill_id": row["id"],
        }
        connection.execute(holds.insert(), [values | {"hold": hold} for hold in sorted(wanted)])


def freeze(connection: sa.Connection, backfill_id: int) -> str:
    """Its counters, to be kept on its row."""
    found = sum_counters(connection, [backfill_id]).get(backfill_id)
    return to_json({}) if found is None else counters_to_json(found)


def idled(row: sa.RowMapping, since: int | None, now: int) -> int:
    """Its idle time, when it was idle since then until now."""
    if since is None or row["started_at"] is None:
        return int(row["idle"])
    return int(row["idle"] + now - max(since, row["started_at"]))


def end(
    connection: sa.Connection, row: sa.RowMapping, status: Status, now: int, **values: Any
) -> None:
    """To a final state, or FAILED: counters frozen, holds given back, leases void."""
    backfill = backfill_of(row).with_status(status)
    moment = {
        Status.COMPLETED: "completed_at",
        Status.FAILED: "failed_at",
        Status.CANCELLED: "cancelled_at",
    }[status]
    connection.execute(holds.delete().where(holds.c.backfill_id == backfill.id))
    update(
        connection,
        backfill.id,
        now,
        status=status.value,
        # frozen before it was failed: its slices may be forgotten since
        counters=row["counters"] or freeze(connection, backfill.id),
        ended_at=now,
        idle=idled(row, row["ended_at"] or row["paused_at"], now),
        paused_at=None,
        **{moment: now},
        **UNLEASED,
        **values,
    )
    note_end(connection, {**row, **values}, status, now)


def note_end(connection: sa.Connection, row: dict[str, Any], status: Status, now: int) -> None:
    """In the same transaction: whoever is to hear of the end does, whatever happens next. A
    schedule that ran as it should is no news."""
    known = {Status.COMPLETED: EventType.COMPLETED, Status.FAILED: EventType.FAILED}
    if status not in known:
        return
    if status is Status.COMPLETED and row["origin"] == Origin.SCHEDULE.value:
        return
    note(connection, row, known[status], now, row["error"])


def note(
    connection: sa.Connection, row: Any, event: EventType, now: int, error: str | None
) -> None:
    found = sum_counters(connection, [row["id"]]).get(row["id"])
    body = {
        "id": row["uid"] if row["kind"] == Kind.SINK.value else row["id"],
        "kind": row["kind"],
        "pipeline_id": row["pipeline_id"],
        "pipeline": row["pipeline_name"],
        "table": spec_of(row["spec"]).read.name,
        "range_start": row["range_start"],
        "range_end": row["range_end"],
        "error": error,
        "rows_delivered": found.rows_delivered if found else 0,
        "rows_rejected": found.rows_rejected if found else 0,
        "slices_total": found.slices_total if found else 0,
        "slices_failed": found.slices_failed if found else 0,
    }
    connection.execute(
        events.insert().values(
            team_id=row["team_id"],
            backfill_id=row["id"],
            kind=row["kind"],
            pipeline_id=row["pipeline_id"],
            type=event.value,
            body=to_json(body),
            spread=False,
            created_at=now,
        )
    )


def cancel(connection: sa.Connection, row: sa.RowMapping, user_id: int | None, now: int) -> None:
    """Pending slices are cancelled; running ones may finish."""
    connection.execute(
        slices.update()
        .where(slices.c.backfill_id == row["id"], slices.c.state == SliceState.PENDING.value)
        .values(state=SliceState.CANCELLED.value, ended_at=now)
    )
    end(connection, row, Status.CANCELLED, now, cancelled_user_id=user_id)


def rename_all(connection: sa.Connection, kind: Kind, pipeline_id: str, name: str) -> None:
    """Every backfill of a pipeline that has another name now: it is addressed by that name."""
    stale = (
        backfills.c.kind == kind.value,
        backfills.c.pipeline_id == pipeline_id,
        backfills.c.pipeline_name != name,
    )
    # locked in the order of their ids first: an update alone takes them in any order
    rows = sa.select(backfills.c.id).where(*stale).order_by(backfills.c.id).with_for_update()
    if connection.execute(rows).all():
        connection.execute(backfills.update().where(*stale).values(pipeline_name=name))


def cancel_all(connection: sa.Connection, kind: Kind, pipeline_id: str, now: int) -> None:
    """Every backfill of a pipeline that goes away, but those that are over: a failed one could be
    retried, and write where another pipeline writes by then."""
    query = (
        sa.select(backfills)
        .where(
            backfills.c.kind == kind.value,
            backfills.c.pipeline_id == pipeline_id,
            backfills.c.status.in_([status.value for status in sorted({*ACTIVE, Status.FAILED})]),
        )
        .order_by(backfills.c.id)
        .with_for_update()
    )
    for row in connection.execute(query).mappings().all():
        cancel(connection, row, None, now)
