"""Claims of packs: which slices a worker may run next, and for how long."""

import dataclasses
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from refill.domain.backfill import Origin, Status
from refill.domain.slice import SliceState
from refill.store import changes
from refill.store.part import Part
from refill.store.records import ClaimedSlice, Pack, PackLimits
from refill.store.rows import backfill_of, dicts, slice_of, to_datetime
from refill.store.tables import (
    QUARANTINED,
    WAITS_FOR_SINK,
    among,
    backfills,
    slices,
    tallies,
    targets,
    teams,
)
from refill.store.turns import in_turn

HISTORY_EVERY = 4  # of so many claims, one goes to history before schedules
UNKNOWN_ROWS = 1_000  # what a slice without an estimate counts for

_RUNS = among(backfills.c.status, Status.SCHEDULED, Status.RUNNING)
_PENDING = among(slices.c.state, SliceState.PENDING)
_RUNNING = among(slices.c.state, SliceState.RUNNING)
_QUARANTINED = slices.c.suspicions > sa.literal_column(str(QUARANTINED - 1))
_TURN = sa.select(tallies.c.value).where(tallies.c.name == "claims")


class Claims(Part):
    def now(self) -> datetime:
        with self._backend.read() as connection:
            return to_datetime(self._backend.now(connection))

    def claim_pack(self, worker: str, limits: PackLimits, lease_seconds: float) -> Pack | None:
        with self._backend.read() as connection:
            turn = connection.execute(_TURN).scalar_one()
            query = _CANDIDATES[turn % HISTORY_EVERY == HISTORY_EVERY - 1]
            now = {"now": self._backend.now(connection)}
            found = connection.execute(query, now).all()
            candidates = [row.id for row in in_turn(connection, found, limits.weights)]
        # First those that nobody holds at this moment; then the others, waiting for each: a
        # backfill whose row is held by a finish for a millisecond must not look as if it had none.
        for waits in (False, True):
            for backfill_id in tuple(candidates):
                with self._backend.write() as connection:
                    row = _lock_runnable(connection, backfill_id, waits)
                    if row is None:
                        continue
                    candidates.remove(backfill_id)
                    pack = self._take(connection, row, worker, limits, lease_seconds)
                    if pack is not None:
                        return pack
        return None

    def any_quarantined(self) -> bool:
        query = (
            sa.select(slices.c.id)
            .join(backfills, backfills.c.id == slices.c.backfill_id)
            .where(_RUNS, _PENDING, _QUARANTINED)
            .limit(1)
        )
        with self._backend.read() as connection:
            return connection.execute(query).first() is not None

    def heartbeat(
        self,
        worker: str,
        slices: Collection[tuple[int, int]],
        claims: Collection[tuple[int, int]],
        lease_seconds: float,
    ) -> tuple[frozenset[int], frozenset[int]]:
        with self._backend.write() as connection:
            until = self._backend.now(connection) + round(lease_seconds * 1_000_000)
            # backfills before slices, as everywhere
            claims_lost = _extend(
                connection, backfills, claims, backfills.c.lease_until.is_not(None), until
            )
            slices_lost = _extend(connection, _SLICES, slices, _RUNNING, until)
        return slices_lost, claims_lost

    def _take(
        self,
        connection: sa.Connection,
        row: sa.RowMapping,
        worker: str,
        limits: PackLimits,
        lease_seconds: float,
    ) -> Pack | None:
        now = self._backend.now(connection)
        if _at_its_limit(connection, row):
            return None
        found = _due_slices(connection, row, limits, now)
        fences = _lock_targets(connection, {part["target"] for part in found})
        busy = _busy_targets(connection, row["id"], fences)
        found = [part for part in found if part["target"] not in busy]
        if not found:
            return None
        keys = {part["target"] for part in found}
        for key in keys:
            fence, owner = fences[key]
            fences[key] = (fence if owner == row["id"] else fence + 1, row["id"])
        connection.execute(
            targets.update()
            .where(
                targets.c.key.in_(sorted(keys)),
                targets.c.backfill_id.is_distinct_from(row["id"]),
            )
            .values(fence=targets.c.fence + 1, backfill_id=row["id"])
        )
        leased: dict[str, Any] = {
            "state": SliceState.RUNNING.value,
            "pack": uuid4().hex,
            "worker": worker,
            "lease_until": now + round(lease_seconds * 1_000_000),
            "started_at": now,
        }
        connection.execute(
            slices.update()
            .where(slices.c.id.in_([part["id"] for part in found]), _PENDING)
            .values(attempt=slices.c.attempt + 1, **leased)
        )
        backfill = backfill_of(row)
        if backfill.status is Status.SCHEDULED:
            backfill = backfill.with_status(Status.RUNNING)
        started = row["started_at"] or now
        changes.update(
            connection,
            backfill.id,
            now,
            status=backfill.status.value,
            started_at=started,
            last_claimed_at=now,
        )
        # last, and so held for the shortest time: every claim waits for this row
        connection.execute(
            tallies.update().where(tallies.c.name == "claims").values(value=tallies.c.value + 1)
        )
        connection.execute(
            teams.update().where(teams.c.id == backfill.team_id).values(claimed_at=now)
        )
        return Pack(
            id=leased["pack"],
            backfill=dataclasses.replace(
                backfill, started_at=to_datetime(started), updated_at=to_datetime(now)
            ),
            rows_rejected=_rejected(connection, backfill.id),
            alone=limits.alone,
            slices=tuple(
                ClaimedSlice(
                    slice=slice_of({**part, **leased, "attempt": part["attempt"] + 1}),
                    fence=fences[part["target"]][0],
                )
                for part in found
            ),
        )


_SLICES = slices  # `heartbeat` has a parameter of that name


def _candidates(history_first: bool) -> Any:
    """Backfills that seem to have something to run; `_take` has the last word."""
    other = slices.alias()
    due = sa.exists().where(
        slices.c.backfill_id == backfills.c.id,
        _PENDING,
        slices.c.not_before <= sa.bindparam("now"),
    )
    packs = (
        sa.select(sa.func.count(sa.distinct(slices.c.pack)))
        .where(slices.c.backfill_id == backfills.c.id, _RUNNING)
        .scalar_subquery()
    )
    # never where its slices write into several: that one is NULL then
    taken = sa.exists().where(
        other.c.target == backfills.c.shared_target,
        among(other.c.state, SliceState.RUNNING),
        _differs(other.c.backfill_id, backfills.c.id),
    )
    first, second = (1, 0) if history_first else (0, 1)
    return (
        sa.select(backfills.c.id, backfills.c.team_id, teams.c.claimed_at)
        .join(teams, teams.c.id == backfills.c.team_id)
        .where(
            _RUNS,
            ~WAITS_FOR_SINK,
            due,
            backfills.c.max_concurrent.is_(None) | (packs < backfills.c.max_concurrent),
            ~taken,
        )
        .order_by(
            sa.case((backfills.c.origin == Origin.SCHEDULE.value, first), else_=second),
            backfills.c.last_claimed_at,
            backfills.c.id,
        )
    )


def _differs(column: Any, backfill_id: Any) -> Any:
    """As two ranges: `!=` would walk all that the backfill itself runs on the target."""
    return (column < backfill_id) | (column > backfill_id)


_CANDIDATES = {history_first: _candidates(history_first) for history_first in (False, True)}


def _lock_runnable(
    connection: sa.Connection, backfill_id: int, waits: bool
) -> sa.RowMapping | None:
    query = sa.select(backfills).where(backfills.c.id == backfill_id, _RUNS)
    return connection.execute(query.with_for_update(skip_locked=not waits)).mappings().first()


def _at_its_limit(connection: sa.Connection, row: sa.RowMapping) -> bool:
    if row["max_concurrent"] is None:
        return False
    query = sa.select(sa.func.count(sa.distinct(slices.c.pack))).where(
        slices.c.backfill_id == row["id"], _RUNNING
    )
    return bool(connection.execute(query).scalar_one() >= row["max_concurrent"])


def _due_slices(
    connection: sa.Connection, row: sa.RowMapping, limits: PackLimits, now: int
) -> list[dict[str, Any]]:
    """In order; at most this claim's share of what is pending, so that the slots end together."""
    own = slices.c.backfill_id == row["id"]
    most = limits.max_slices * 2 * limits.slots
    pending = sa.select(slices.c.id).where(own, _PENDING).limit(most).subquery()
    count = connection.execute(sa.select(sa.func.count()).select_from(pending)).scalar_one()
    share = -(-count // (2 * limits.slots))
    query = (
        sa.select(slices)
        .where(own, _PENDING, slices.c.not_before <= now)
        .where(_QUARANTINED if limits.alone else ~_QUARANTINED)
        .order_by(slices.c.index)
        .limit(1 if limits.alone else max(1, min(limits.max_slices, share)))
        .with_for_update(skip_locked=True, of=slices)
    )
    if row["shared_target"] is None:
        other = slices.alias()
        query = query.where(
            ~sa.exists().where(
                other.c.target == slices.c.target,
                among(other.c.state, SliceState.RUNNING),
                _differs(other.c.backfill_id, row["id"]),
            )
        )
    found: list[dict[str, Any]] = []
    rows = 0
    for part in dicts(connection.execute(query)):
        found.append(part)
        rows += part["rows_estimated"] or UNKNOWN_ROWS
        if rows >= limits.max_rows:
            break
    return found


def _lock_targets(
    connection: sa.Connection, keys: Collection[str]
) -> dict[str, tuple[int, int | None]]:
    """Fence and owner of each. A statement of its own: what is looked at next must be seen as it
    is once the locks are held, not as it was when a joined query began."""
    query = (
        sa.select(targets)
        .where(targets.c.key.in_(sorted(keys)))
        .order_by(targets.c.key)
        .with_for_update()
    )
    return {row.key: (row.fence, row.backfill_id) for row in connection.execute(query)}


def _busy_targets(
    connection: sa.Connection, backfill_id: int, keys: Collection[str]
) -> frozenset[str]:
    """Targets on which a slice of another backfill, in whatever state that one is, still runs."""
    query = (
        sa.select(slices.c.target)
        .where(
            slices.c.target.in_(sorted(keys)),
            _RUNNING,
            _differs(slices.c.backfill_id, backfill_id),
        )
        .distinct()
    )
    return frozenset(connection.execute(query).scalars())


def _rejected(connection: sa.Connection, backfill_id: int) -> int:
    query = sa.select(sa.func.sum(slices.c.rows_rejected)).where(
        slices.c.backfill_id == backfill_id, slices.c.rows_rejected > sa.literal_column("0")
    )
    return int(connection.execute(query).scalar() or 0)


def _extend(
    connection: sa.Connection,
    table: sa.Table,
    held: Collection[tuple[int, int]],
    condition: Any,
    until: int,
) -> frozenset[int]:
    """Extends leases that are still held; the ids of those that are not."""
    if not held:
        return frozenset()
    attempts = dict(held)
    query = sa.select(table.c.id, table.c.attempt).where(
        table.c.id.in_(sorted(attempts)), condition
    )
    query = query.order_by(table.c.id).with_for_update()
    kept: Sequence[int] = [
        row.id for row in connection.execute(query) if row.attempt == attempts[row.id]
    ]
    if kept:
        connection.execute(table.update().where(table.c.id.in_(kept)).values(lease_until=until))
    return frozenset(attempts) - frozenset(kept)
