"""Leases on a backfill as a whole: to plan it, or to seal it."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from refill.domain.backfill import ACTIVE, CountedBackfill, Origin, Status
from refill.domain.errors import Superseded
from refill.domain.retry import RetryPolicy
from refill.domain.slice import Dated, Fault, Receipt, SliceState
from refill.domain.spec import Spec, TransferSpec
from refill.store import changes
from refill.store.finishing import settle
from refill.store.part import Part
from refill.store.records import BackfillClaim, PlannedSlice
from refill.store.rows import backfill_of, spec_of, spec_to_json
from refill.store.tables import WAITS_FOR_SINK, among, backfills, slices, targets

_PORTION = 5_000  # rows per INSERT statement
_UNDONE = [state for state in SliceState if state is not SliceState.COMPLETED]
_SCHEDULES_FIRST = sa.case((backfills.c.origin == Origin.SCHEDULE.value, 0), else_=1)


class Leases(Part):
    def claim_plan(
        self, worker: str, lease_seconds: float, but_teams: Collection[int] = ()
    ) -> BackfillClaim | None:
        condition = among(backfills.c.status, Status.CREATED) & ~WAITS_FOR_SINK
        return self._claim(worker, lease_seconds, condition, but_teams)

    def claim_seal(
        self, worker: str, lease_seconds: float, but_teams: Collection[int] = ()
    ) -> BackfillClaim | None:
        undone = sa.exists().where(
            slices.c.backfill_id == backfills.c.id, among(slices.c.state, *_UNDONE)
        )
        return self._claim(
            worker,
            lease_seconds,
            among(backfills.c.status, Status.SCHEDULED, Status.RUNNING, Status.PAUSED)
            & backfills.c.planned.is_(True)
            & backfills.c.seals.is_(True)
            & ~undone,
            but_teams,
        )

    def save_plan(
        self,
        claim: BackfillClaim,
        slices: Iterable[PlannedSlice],
        *,
        rows_estimated: int,
        spec: Spec | None = None,
    ) -> CountedBackfill:
        planned = list(slices)
        with self._backend.write() as connection:
            row = self._held(connection, claim)
            if row["planned"]:
                raise Superseded(f"Backfill {claim.backfill.id} was planned meanwhile.")
            now = self._backend.now(connection)
            self._insert(connection, row["id"], planned, now)
            keys = {part.target for part in planned}
            values: dict[str, Any] = {
                "planned": True,
                "rows_estimated": rows_estimated,
                "shared_target": keys.pop() if len(keys) == 1 else None,
                "failures": 0,
                "not_before": 0,
                **changes.UNLEASED,
            }
            if spec is not None:
                values["spec"] = spec_to_json(spec)
            if not planned and not row["seals"]:
                changes.update(connection, row["id"], now, **values, started_at=now)
                changes.end(connection, row, Status.COMPLETED, now)
            else:
                if row["status"] != Status.PAUSED.value:
                    after = backfill_of(row).with_status(Status.SCHEDULED)
                    values["status"] = after.status.value
                changes.update(connection, row["id"], now, **values)
            return changes.load(connection, row["id"])

    def end_claim(
        self, claim: BackfillClaim, fault: Fault | None, policy: RetryPolicy
    ) -> CountedBackfill:
        """Without a fault, a claim to plan is handed back as it was: a clean stop."""
        with self._backend.write() as connection:
            row = self._held(connection, claim)
            now = self._backend.now(connection)
            if fault is not None:
                self._fail_claim(connection, row, fault, policy, now)
            elif row["planned"]:
                changes.end(connection, row, Status.COMPLETED, now)
            else:
                changes.update(connection, row["id"], now, **changes.UNLEASED)
            return changes.load(connection, row["id"])

    def take_back(
        self, claim: BackfillClaim, lost: Sequence[Receipt], policy: RetryPolicy
    ) -> CountedBackfill:
        with self._backend.write() as connection:
            row = self._held(connection, claim)
            now = self._backend.now(connection)
            changes.update(connection, row["id"], now, **changes.UNLEASED)
            settle(connection, row, lost, policy, self._rng, now, state=SliceState.COMPLETED)
            return changes.load(connection, row["id"])

    def _fail_claim(
        self,
        connection: sa.Connection,
        row: sa.RowMapping,
        fault: Fault,
        policy: RetryPolicy,
        now: int,
    ) -> bool:
        """Whether it ended the backfill: else it waits for a later claim."""
        failures = row["failures"] + 1
        delay = policy.delay_seconds(fault, failures, self._rng)
        if delay is None:
            error = {"error": fault.message, "error_code": fault.code}
            if not row["planned"]:
                self._insert_failed(connection, row, fault, failures, now)
            changes.end(connection, row, Status.FAILED, now, failures=failures, **error)
            return True
        due = now + round(delay * 1_000_000)
        values = {"failures": failures, "not_before": due}
        changes.update(connection, row["id"], now, **values, **changes.UNLEASED)
        return False

    def _insert_failed(
        self,
        connection: sa.Connection,
        row: sa.RowMapping,
        fault: Fault,
        failures: int,
        now: int,
    ) -> None:
        """A failed run for each date of a transfer that could not be planned: whoever looks at its
        runs, or asks for the failed dates, finds them. Planned again, they make room."""
        ended = {
            "state": SliceState.FAILED.value,
            "failures": failures,
            "error": fault.message,
            "error_code": fault.code,
            "ended_at": now,
        }
        spec = spec_of(row["spec"])
        if not isinstance(spec, TransferSpec):
            return
        dates = [PlannedSlice(extent=Dated(date=day), target="") for day in spec.dates]
        self._insert(connection, row["id"], dates, now, **ended)

    def _claim(
        self, worker: str, lease_seconds: float, condition: Any, but_teams: Collection[int]
    ) -> BackfillClaim | None:
        """Teams take turns: first the one that has the fewest in work."""
        unheld = condition & backfills.c.lease_until.is_(None)
        with self._backend.read() as connection:
            # most looks find nothing: those must not queue for the right to write
            waiting = _first_by_team(connection, unheld, self._backend.now(connection))
            left = {team: first for team, first in waiting.items() if team not in but_teams}
            busy = _in_work(connection) if len(left) > 1 else {}
        for team in sorted(left, key=lambda team: (busy.get(team, 0), left[team])):
            with self._backend.write() as connection:
                claim = self._lease(connection, worker, lease_seconds, unheld, team)
                if claim is not None:
                    return claim
        return None

    def _lease(
        self, connection: sa.Connection, worker: str, lease_seconds: float, unheld: Any, team: int
    ) -> BackfillClaim | None:
        now = self._backend.now(connection)
        query = (
            sa.select(backfills)
            .where(unheld, backfills.c.not_before <= now, backfills.c.team_id == team)
            .order_by(_SCHEDULES_FIRST, backfills.c.id)
            .limit(1)
            .with_for_update(skip_locked=True, of=backfills)
        )
        row = connection.execute(query).mappings().first()
        if row is None:
            return None
        attempt = row["attempt"] + 1
        changes.update(
            connection,
            row["id"],
            now,
            attempt=attempt,
            worker=worker,
            lease_until=now + round(lease_seconds * 1_000_000),
        )
        return BackfillClaim(
            backfill=backfill_of({**row, "updated_at": now}),
            attempt=attempt,
            failures=row["failures"],
        )

    def _held(self, connection: sa.Connection, claim: BackfillClaim) -> sa.RowMapping:
        """The locked row, if the claim still stands."""
        row = changes.lock(connection, claim.backfill.id)
        if row["attempt"] != claim.attempt or row["lease_until"] is None:
            raise Superseded(
                f"The claim on backfill {claim.backfill.id} was lost: it was cancelled, or another "
                "worker took over."
            )
        return row

    def _insert(
        self,
        connection: sa.Connection,
        backfill_id: int,
        planned: Sequence[PlannedSlice],
        now: int,
        **values: Any,
    ) -> None:
        for start in range(0, len(planned), _PORTION):
            portion = [
                {
                    "backfill_id": backfill_id,
                    "index": index,
                    "extent": part.extent.model_dump_json(),
                    "date": part.extent.date.isoformat()
                    if isinstance(part.extent, Dated)
                    else None,
                    "target": part.target,
                    "state": SliceState.PENDING.value,
                    "rows_estimated": part.rows_estimated,
                    "queued_at": now,
                    **values,
                }
                for index, part in enumerate(planned[start : start + _PORTION], start)
            ]
            connection.execute(slices.insert(), portion)
        keys = sorted({part.target for part in planned if part.target})
        if keys:
            # sorted: two plans over the same targets would wait for each other
            missing = self._backend.insert_missing(targets)
            connection.execute(missing, [{"key": key} for key in keys])


def _first_by_team(
    connection: sa.Connection, condition: Any, now: int
) -> dict[int, tuple[int, int]]:
    """Of each team what it would have first, as a place in the queue."""
    query = (
        sa.select(
            backfills.c.team_id,
            sa.func.min(_SCHEDULES_FIRST).label("kind"),
            sa.func.min(backfills.c.id).label("oldest"),
        )
        .where(condition, backfills.c.not_before <= now)
        .group_by(backfills.c.team_id)
    )
    return {row.team_id: (row.kind, row.oldest) for row in connection.execute(query)}


def _in_work(connection: sa.Connection) -> dict[int, int]:
    """How many backfills of each team are planned or sealed at this moment."""
    query = (
        sa.select(backfills.c.team_id, sa.func.count().label("held"))
        .where(among(backfills.c.status, *ACTIVE), backfills.c.lease_until.is_not(None))
        .group_by(backfills.c.team_id)
    )
    return {row.team_id: row.held for row in connection.execute(query)}
