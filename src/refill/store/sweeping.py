"""Mending what a crash left, and forgetting what is long over."""

import sqlalchemy as sa

from refill.domain.backfill import Status
from refill.domain.pipeline import Kind
from refill.domain.retry import WORKER_LOST, RetryPolicy
from refill.domain.slice import Outcome, Receipt, SliceState
from refill.store import changes
from refill.store.finishing import conclude, settle
from refill.store.leases import Leases
from refill.store.records import Swept
from refill.store.slices import newest_completed
from refill.store.tables import (
    among,
    answers,
    backfills,
    deliveries,
    events,
    rates,
    rejects,
    slices,
    tallies,
)

_ENDED = (Status.COMPLETED, Status.FAILED, Status.CANCELLED)
_RUNNABLE = (Status.SCHEDULED, Status.RUNNING, Status.PAUSED)
_DAY = 86_400_000_000
_HOUR = 3_600_000_000


class Sweeping(Leases):
    def sweep(self, policy: RetryPolicy) -> Swept:
        with self._backend.read() as connection:
            now = self._backend.now(connection)
            suspects = sorted(
                {
                    *connection.execute(_backfills_with_lost_slices(now)).scalars(),
                    *connection.execute(_lost_claims(now)).scalars(),
                    *connection.execute(_left_unended()).scalars(),
                }
            )
        lost = ended = 0
        for backfill_id in suspects:
            # one short transaction each: a sweep must not hold up the others
            with self._backend.write() as connection:
                found, over = self._mend(connection, backfill_id, policy)
                lost += found
                ended += over
        return Swept(leases_lost=lost, backfills_ended=ended)

    def _mend(
        self, connection: sa.Connection, backfill_id: int, policy: RetryPolicy
    ) -> tuple[int, bool]:
        """Leases lost, and whether it ended the backfill."""
        row = changes.lock(connection, backfill_id)
        now = self._backend.now(connection)
        lost = 0
        if row["lease_until"] is not None and row["lease_until"] < now:
            lost += 1
            if self._fail_claim(connection, row, WORKER_LOST, policy, now):
                _count_lost(connection, lost)
                return lost, True
        query = sa.select(slices.c.id, slices.c.attempt).where(
            slices.c.backfill_id == backfill_id,
            among(slices.c.state, SliceState.RUNNING),
            slices.c.lease_until < now,
        )
        receipts = [
            Receipt(
                slice_id=part.id, attempt=part.attempt, outcome=Outcome.FAILED, fault=WORKER_LOST
            )
            for part in connection.execute(query)
        ]
        if receipts:
            status = settle(connection, row, receipts, policy, self._rng, now).status
            lost += len(receipts)
        else:
            status, _ = conclude(connection, row, now)
        _count_lost(connection, lost)
        return lost, status in _ENDED and row["status"] not in _ENDED

    def prune(self, retention_days: int) -> int:
        """Of each date of a transfer the newest completed run is kept: without it, `missing`
        dates would be run again."""
        with self._backend.read() as connection:
            limit = self._backend.now(connection) - retention_days * _DAY
            old = sa.select(backfills.c.id).where(
                among(backfills.c.status, *_ENDED),
                backfills.c.ended_at < limit,
                sa.exists().where(slices.c.backfill_id == backfills.c.id),
            )
            found = connection.execute(old).scalars().all()
        pruned = 0
        for backfill_id in found:
            with self._backend.write() as connection:
                row = changes.lock(connection, backfill_id)
                # retried since it was found, it is no longer over: its slices are to run
                if row["ended_at"] is not None:
                    pruned += _forget(connection, row)
        with self._backend.write() as connection:
            connection.execute(answers.delete().where(answers.c.created_at < limit))
            stale = sa.select(events.c.id).where(events.c.created_at < limit)
            connection.execute(deliveries.delete().where(deliveries.c.event_id.in_(stale)))
            connection.execute(events.delete().where(events.c.created_at < limit))
            connection.execute(rates.delete().where(rates.c.hour < limit // _HOUR))
        return pruned


def _backfills_with_lost_slices(now: int) -> sa.Select[int]:
    return (
        sa.select(slices.c.backfill_id)
        .where(among(slices.c.state, SliceState.RUNNING), slices.c.lease_until < now)
        .distinct()
    )


def _lost_claims(now: int) -> sa.Select[int]:
    return sa.select(backfills.c.id).where(
        among(backfills.c.status, Status.CREATED, *_RUNNABLE), backfills.c.lease_until < now
    )


def _left_unended() -> sa.Select[int]:
    unended = sa.exists().where(
        slices.c.backfill_id == backfills.c.id,
        among(slices.c.state, SliceState.PENDING, SliceState.RUNNING),
    )
    failed = sa.exists().where(
        slices.c.backfill_id == backfills.c.id, among(slices.c.state, SliceState.FAILED)
    )
    return sa.select(backfills.c.id).where(
        among(backfills.c.status, *_RUNNABLE),
        backfills.c.planned.is_(True),
        ~unended,
        # one whose slices are all completed and that is to be sealed is left to `claim_seal`
        backfills.c.seals.is_(False) | failed,
    )


def _forget(connection: sa.Connection, row: sa.RowMapping) -> int:
    kept: list[int] = []
    if row["kind"] == Kind.TRANSFER.value:
        rows = connection.execute(newest_completed(row["pipeline_id"]))
        kept = list({found.date: found.id for found in rows}.values())
    gone = sa.select(slices.c.id).where(slices.c.backfill_id == row["id"])
    own = set(connection.execute(gone).scalars()) - set(kept)
    if not own:
        return 0
    connection.execute(rejects.delete().where(rejects.c.slice_id.in_(own)))
    connection.execute(slices.delete().where(slices.c.id.in_(own)))
    return len(own)


def _count_lost(connection: sa.Connection, lost: int) -> None:
    if lost:
        connection.execute(
            tallies.update()
            .where(tallies.c.name == "leases_lost")
            .values(value=tallies.c.value + lost)
        )
