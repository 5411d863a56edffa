"""The end of slices, and of the backfill with the last of them."""

import random
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from refill.domain.backfill import ACTIVE, Status
from refill.domain.errors import Superseded
from refill.domain.retry import ENGINE_KILLED, RetryPolicy
from refill.domain.slice import Fault, Outcome, Receipt, SliceState
from refill.store import changes
from refill.store.part import Part
from refill.store.records import Finished
from refill.store.rows import spec_of, to_json
from refill.store.summing import sum_counters
from refill.store.tables import QUARANTINED, among, rejects, slices

_UNEXPLAINED = Fault(
    code="error",
    message="The slice failed and gave no reason; the worker's log may have it.",
    transient=True,
)
_OVERTAKEN = Fault(
    code=Superseded.code,
    message="Something else wrote to this slice's place at the destination; it is tried again.",
    transient=True,
)
_COUNTS = ("rows_read", "rows_delivered", "rows_filtered", "rows_rejected", "bytes_written")
_WRITTEN = (
    *("state", "failures", "not_before", "pack", "worker", "lease_until"),
    *("started_at", "ended_at", "error", "error_code", "seconds", *_COUNTS),
)
_UPDATE = {
    state: slices.update()
    .where(
        slices.c.id == sa.bindparam("slice_id"),
        slices.c.attempt == sa.bindparam("held"),
        among(slices.c.state, state),
    )
    .values({name: sa.bindparam(name) for name in _WRITTEN})
    for state in (SliceState.RUNNING, SliceState.PENDING, SliceState.COMPLETED)
}


class Finishing(Part):
    def finish_slices(
        self, backfill_id: int, receipts: Sequence[Receipt], policy: RetryPolicy
    ) -> Finished:
        with self._backend.write() as connection:
            row = changes.lock(connection, backfill_id)
            now = self._backend.now(connection)
            return settle(connection, row, receipts, policy, self._rng, now)

    def release_slices(self, held: Collection[tuple[int, int]]) -> int:
        owners = sa.select(slices.c.id, slices.c.backfill_id).where(
            slices.c.id.in_([slice_id for slice_id, _ in held])
        )
        with self._backend.read() as connection:
            backfill_of = {row.id: row.backfill_id for row in connection.execute(owners)}
        released = 0
        for backfill_id in sorted(set(backfill_of.values())):
            receipts = [
                Receipt(slice_id=slice_id, attempt=attempt, outcome=Outcome.UNSTARTED)
                for slice_id, attempt in held
                if backfill_of.get(slice_id) == backfill_id
            ]
            # nothing is counted as a failure here, so that any policy will do
            released += len(self.finish_slices(backfill_id, receipts, RetryPolicy()).accepted)
        return released

    def suspect_slices(self, held: Collection[tuple[int, int]], policy: RetryPolicy) -> int:
        """What ran when an engine died: one of them may have killed it, and the others merely ran
        beside. All go back without a failure; what did so twice runs alone, and what ran alone
        then has shown itself."""
        attempts = dict(held)
        owners = sa.select(slices.c.backfill_id).where(slices.c.id.in_(attempts)).distinct()
        with self._backend.read() as connection:
            backfill_ids = sorted(connection.execute(owners).scalars())
        back = 0
        for backfill_id in backfill_ids:
            with self._backend.write() as connection:
                row = changes.lock(connection, backfill_id)
                now = self._backend.now(connection)
                receipts = _suspected(connection, backfill_id, attempts)
                settled = settle(connection, row, receipts, policy, self._rng, now)
                back += len(settled.accepted)
        return back


def _suspected(
    connection: sa.Connection, backfill_id: int, attempts: Mapping[int, int]
) -> list[Receipt]:
    query = sa.select(slices.c.id, slices.c.attempt, slices.c.suspicions).where(
        slices.c.backfill_id == backfill_id,
        slices.c.id.in_(sorted(attempts)),
        among(slices.c.state, SliceState.RUNNING),
    )
    found = [part for part in connection.execute(query) if part.attempt == attempts[part.id]]
    ids = [part.id for part in found]
    connection.execute(
        slices.update().where(slices.c.id.in_(ids)).values(suspicions=slices.c.suspicions + 1)
    )
    return [
        Receipt(slice_id=part.id, attempt=part.attempt, outcome=Outcome.FAILED, fault=ENGINE_KILLED)
        if part.suspicions >= QUARANTINED
        else Receipt(slice_id=part.id, attempt=part.attempt, outcome=Outcome.UNSTARTED)
        for part in found
    ]


def settle(
    connection: sa.Connection,
    row: sa.RowMapping,
    receipts: Sequence[Receipt],
    policy: RetryPolicy,
    rng: random.Random,
    now: int,
    state: SliceState = SliceState.RUNNING,
) -> Finished:
    """Records what became of slices of a backfill whose row is locked, and ends it if it is.
    Only of those that are still in `state`."""
    policy = policy.limited(spec_of(row["spec"]).max_retry_count)
    wanted = {receipt.slice_id: receipt for receipt in reversed(receipts)}
    held = {
        found["id"]: found
        for found in _found(connection, row["id"], sorted(wanted), state)
        if found["attempt"] == wanted[found["id"]].attempt
    }
    verdicts = [
        _verdict(wanted[slice_id], found, row["status"], policy, rng, now)
        for slice_id, found in held.items()
    ]
    if verdicts:
        connection.execute(_UPDATE[state], verdicts)
        _keep_rejects(connection, row["id"], [wanted[slice_id] for slice_id in held])
    status, sealable = conclude(connection, row, now)
    return Finished(
        accepted=frozenset(held),
        superseded=frozenset(wanted) - frozenset(held),
        status=status,
        sealable=sealable,
    )


def conclude(connection: sa.Connection, row: sa.RowMapping, now: int) -> tuple[Status, bool]:
    """Ends the backfill if its slices have all ended: (its status, whether it is to be sealed)."""
    status, backfill_id = Status(row["status"]), row["id"]
    if status is Status.CANCELLED:
        # slices that were running when it was cancelled ended since
        frozen = changes.freeze(connection, backfill_id)
        changes.update(connection, backfill_id, now, counters=frozen)
        return status, False
    if status not in ACTIVE or not row["planned"]:
        return status, False
    unfinished = (
        sa.select(sa.literal(1))
        .where(
            slices.c.backfill_id == backfill_id,
            among(slices.c.state, SliceState.PENDING, SliceState.RUNNING),
        )
        .limit(1)
    )
    if connection.execute(unfinished).first() is not None:
        changes.update(connection, backfill_id, now)
        return status, False
    counters = sum_counters(connection, [backfill_id]).get(backfill_id)
    if counters is not None and counters.slices_failed:
        error, code = _first_error(connection, backfill_id)
        said = f"{counters.slices_failed} of {counters.slices_total} slices failed; first: {error}"
        changes.end(connection, row, Status.FAILED, now, error=said, error_code=code)
        return Status.FAILED, False
    if row["seals"]:
        changes.update(connection, backfill_id, now)
        return status, True
    changes.end(connection, row, Status.COMPLETED, now)
    return Status.COMPLETED, False


def _found(
    connection: sa.Connection, backfill_id: int, ids: Sequence[int], state: SliceState
) -> Sequence[sa.RowMapping]:
    query = (
        sa.select(
            *(slices.c.id, slices.c.attempt, slices.c.failures),
            *(slices.c.pack, slices.c.worker, slices.c.started_at),
        )
        .where(
            slices.c.backfill_id == backfill_id,
            slices.c.id.in_(ids),
            among(slices.c.state, state),
        )
        .order_by(slices.c.id)
        .with_for_update()
    )
    return connection.execute(query).mappings().all()


def _verdict(
    receipt: Receipt,
    found: sa.RowMapping,
    status: str,
    policy: RetryPolicy,
    rng: random.Random,
    now: int,
) -> dict[str, Any]:
    """What is written on the slice."""
    verdict: dict[str, Any] = {
        "slice_id": receipt.slice_id,
        "held": receipt.attempt,
        "failures": found["failures"],
        "not_before": 0,
        "pack": found["pack"],
        "worker": found["worker"],
        "lease_until": None,
        "started_at": found["started_at"] or now,
        "ended_at": now,
        "error": None,
        "error_code": None,
        "seconds": receipt.seconds,
        **{name: getattr(receipt, name) for name in _COUNTS},
    }
    if receipt.outcome is Outcome.DONE:
        return verdict | {"state": SliceState.COMPLETED.value}
    delay: float | None = 0.0
    if receipt.outcome in (Outcome.FAILED, Outcome.SUPERSEDED):
        overtaken = receipt.outcome is Outcome.SUPERSEDED
        fault = receipt.fault or (_OVERTAKEN if overtaken else _UNEXPLAINED)
        failures = found["failures"] + 1
        verdict |= {"failures": failures, "error": fault.message, "error_code": fault.code}
        delay = policy.delay_seconds(fault, failures, rng)
        dropped = status == Status.CANCELLED.value and fault.transient
        if delay is None and not dropped:
            return verdict | {"state": SliceState.FAILED.value}
    verdict |= dict.fromkeys(_COUNTS, 0) | {"seconds": 0.0}
    if status == Status.CANCELLED.value:
        return verdict | {"state": SliceState.CANCELLED.value}
    return verdict | {
        "state": SliceState.PENDING.value,
        "not_before": now + round(delay * 1_000_000) if delay else 0,
        **{"pack": None, "worker": None, "started_at": None, "ended_at": None},
    }


def _keep_rejects(connection: sa.Connection, backfill_id: int, receipts: Sequence[Receipt]) -> None:
    ran = [receipt for receipt in receipts if receipt.outcome in (Outcome.DONE, Outcome.FAILED)]
    if not ran:
        return
    earlier = rejects.c.slice_id.in_([receipt.slice_id for receipt in ran])
    connection.execute(rejects.delete().where(earlier))
    rows = [
        {
            "backfill_id": backfill_id,
            "slice_id": receipt.slice_id,
            "key": to_json(reject.key),
            "reason": reject.reason,
            "detail": reject.detail,
        }
        for receipt in ran
        for reject in receipt.rejects
    ]
    if rows:
        connection.execute(rejects.insert(), rows)


def _first_error(connection: sa.Connection, backfill_id: int) -> tuple[str, str | None]:
    query = (
        sa.select(slices.c.error, slices.c.error_code, slices.c.date)
        .where(slices.c.backfill_id == backfill_id, among(slices.c.state, SliceState.FAILED))
        .order_by(slices.c.index)
        .limit(1)
    )
    first = connection.execute(query).one()
    said = first.error or _UNEXPLAINED.message
    return (f"{first.date}: {said}" if first.date else said), first.error_code
