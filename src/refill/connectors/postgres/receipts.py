"""Receipts: a slice and its receipt are one transaction, so the destination itself knows which
attempt it holds. The higher (fence, attempt) wins; a stale one finds it and stops."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

from refill.connectors.kit.contract import Job
from refill.connectors.postgres.quoting import literal, qualified
from refill.connectors.postgres.sink_session import SinkSession
from refill.domain.errors import SinkUnavailable, Superseded
from refill.domain.slice import Slice, Ticket
from refill.domain.spec import SinkSpec

RECEIPTS = "_refill_receipts"
TAKE_SECONDS = 30.0


def create_receipts(session: SinkSession, schema: str) -> None:
    """`table_id` says which table it was: one of the same name that was made anew holds nothing of
    what is receipted. Receipts of before there was such a mark get the column, once: changing a
    table waits for everybody who writes to it."""
    session.execute(
        f"CREATE TABLE IF NOT EXISTS {qualified(schema, RECEIPTS)} ("
        "key text PRIMARY KEY, target text NOT NULL, fence bigint NOT NULL, "
        "attempt bigint NOT NULL, nonce text NOT NULL, backfill text NOT NULL, "
        "rows bigint NOT NULL, at timestamptz NOT NULL DEFAULT now(), table_id bigint)"
    )
    marked = session.row(
        "SELECT 1 FROM pg_attribute WHERE attname = 'table_id' AND NOT attisdropped "
        f"AND attrelid = to_regclass({literal(qualified(schema, RECEIPTS))})"
    )
    if marked is None:
        session.execute(f"ALTER TABLE {qualified(schema, RECEIPTS)} ADD COLUMN table_id bigint")


def find_missing(
    session: SinkSession, schema: str, table: str, job: Job, slices: Sequence[Slice]
) -> list[Slice]:
    """Slices without a receipt of the table that is there now. Receipts of before there was such a
    mark are taken for good."""
    known = session.row(
        f"SELECT {_table_id(schema, table)}, to_regclass({literal(qualified(schema, RECEIPTS))})"
    )
    if known is None or None in known:
        return list(slices)
    keys = {_key_of(job, part): part for part in slices}
    wanted = ", ".join(literal(key) for key in keys)
    found = session.rows(
        f"SELECT key FROM {qualified(schema, RECEIPTS)} WHERE key IN ({wanted}) "
        f"AND coalesce(table_id, {known[0]}) = {known[0]}"
    )
    there = {key for (key,) in found}
    return [part for key, part in keys.items() if key not in there]


def _table_id(schema: str, table: str) -> str:
    return f"to_regclass({literal(qualified(schema, table))})::oid::bigint"


def _key_of(job: Job, part: Ticket | Slice) -> str:
    target = job.lasting_target(part)
    return f"{target}#{part.index}" if isinstance(job.spec, SinkSpec) else target


@dataclass(frozen=True, slots=True)
class Receipted:
    """What an earlier attempt of the same slice committed."""

    fence: int
    attempt: int
    nonce: str
    rows: int
    same_table: bool  # it was written into the table that is there now


@dataclass(frozen=True, slots=True)
class Claim:
    """One execution's claim on its slice, at the destination."""

    schema: str
    table: str
    target: str
    key: str  # of this slice; a transfer's date has the target to itself
    ticket: Ticket
    backfill_uid: str
    shared: bool  # other slices of the same backfill write into the target too

    @classmethod
    def of(cls, schema: str, table: str, job: Job, ticket: Ticket) -> "Claim":
        return cls(
            schema=schema,
            table=table,
            target=job.lasting_target(ticket),
            key=_key_of(job, ticket),
            ticket=ticket,
            backfill_uid=job.backfill_uid,
            shared=isinstance(job.spec, SinkSpec),
        )

    @property
    def purpose(self) -> str:
        """The backend's application_name: whose it is, and which of two is older."""
        return f"{self._stem(self.key)}{self.ticket.fence}.{self.ticket.attempt}"

    def take(self, session: SinkSession) -> Receipted | None:
        """Locks the slice until the transaction ends; what an earlier attempt committed, if any.
        Superseded when that is not older than this."""
        session.name(self.purpose)
        if self.shared:
            self._hold_target(session)
        self._lock(session, self.key, exclusive=True)
        found = self._read(session, self.key)
        mine = (self.ticket.fence, self.ticket.attempt)
        if found is None:
            return None
        if (found.fence, found.attempt) > mine:
            raise Superseded("A newer attempt of this slice has been delivered already.")
        if (found.fence, found.attempt) == mine and found.nonce != self.ticket.nonce:
            raise Superseded("Another execution of this attempt has been delivered already.")
        return found

    def settle(self, session: SinkSession, rows: int) -> None:
        """The receipt, in the transaction of the rows, and the end of that transaction."""
        session.commit(self._insert_sql(self.key, rows))

    def overtaken(self, session: SinkSession) -> bool:
        """Whether the destination holds a newer attempt: asked after a connection was lost."""
        found = self._read(session, self.key)
        raised = self._read(session, self.target) if self.shared else None
        mine = (self.ticket.fence, self.ticket.attempt)
        return (found is not None and (found.fence, found.attempt) > mine) or (
            raised is not None and raised.fence > self.ticket.fence
        )

    def _hold_target(self, session: SinkSession) -> None:
        """Slices of one backfill share the target; a later backfill takes it from them whole."""
        if not self._is_raised(session):
            self._raise_fence(session)
            # ended at once: the other slices of this backfill go on beside this one
            session.commit()
        self._lock(session, self.target, exclusive=False)
        found = self._read(session, self.target)
        if found is not None and found.fence > self.ticket.fence:
            raise Superseded("A later backfill has taken over this table.")

    def _is_raised(self, session: SinkSession) -> bool:
        found = self._read(session, self.target)
        return found is not None and found.fence >= self.ticket.fence

    def _raise_fence(self, session: SinkSession) -> None:
        """By the first slice of the backfill. Another one that comes at the same moment must not
        wait for the lock: the first holds it, shared, for as long as it writes."""
        deadline = time.monotonic() + TAKE_SECONDS
        while not self._try_lock(session, self.target, exclusive=True):
            if self._is_raised(session):
                return
            if time.monotonic() > deadline:
                raise SinkUnavailable(
                    f"Could not take over {self.target}: somebody else writes it; tried again."
                )
            self._terminate_older(session)
            session.execute("SELECT pg_sleep(0.05)")
        if not self._is_raised(session):
            earlier = f"target = {literal(self.target)} AND fence < {self.ticket.fence}"
            session.execute(
                f"{self._insert_sql(self.target, 0)}; DELETE FROM {self._receipts} WHERE {earlier}"
            )

    def _try_lock(self, session: SinkSession, name: str, *, exclusive: bool) -> bool:
        free = session.row(f"SELECT pg_try_{self._lock_call(name, exclusive)}")
        return bool(free and free[0])

    def _lock(self, session: SinkSession, name: str, *, exclusive: bool) -> None:
        if self._try_lock(session, name, exclusive=exclusive):
            return
        # somebody holds it: an older attempt, which is a zombie by now, or its last moments
        self._terminate_older(session)
        session.execute(f"SELECT pg_{self._lock_call(name, exclusive)}")

    def _lock_call(self, name: str, exclusive: bool) -> str:
        number = _lock_number(f"{self.schema}/{name}")
        return f"advisory_xact_lock{'' if exclusive else '_shared'}({number})"

    def _terminate_older(self, session: SinkSession) -> None:
        """Backends of older attempts of this slice, or of earlier backfills on this target."""
        order = "split_part(application_name, ' ', 5)"
        older = (
            f"starts_with(application_name, {literal(self._stem(self.key))}) "
            f"AND string_to_array({order}, '.')::bigint[] "
            f"< ARRAY[{self.ticket.fence}, {self.ticket.attempt}]::bigint[]"
        )
        if self.shared:
            older += (
                f" OR starts_with(application_name, {literal(self._target_stem)}) "
                f"AND split_part({order}, '.', 1)::bigint < {self.ticket.fence}"
            )
        session.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE usename = current_user AND datname = current_database() "
            f"AND pid <> pg_backend_pid() AND state <> 'idle' AND ({older})"
        )

    @property
    def _receipts(self) -> str:
        return qualified(self.schema, RECEIPTS)

    @property
    def _target_stem(self) -> str:
        return f"refill sink {_short(f'{self.schema}/{self.target}')} "

    def _stem(self, key: str) -> str:
        return f"{self._target_stem}{_short(key)} "

    def _read(self, session: SinkSession, key: str) -> Receipted | None:
        found = session.row(
            "SELECT fence, attempt, nonce, rows, "
            f"coalesce(table_id = {_table_id(self.schema, self.table)}, true) "
            f"FROM {self._receipts} WHERE key = {literal(key)}"
        )
        return Receipted(*found) if found else None

    def _insert_sql(self, key: str, rows: int) -> str:
        values = (
            f"{literal(key)}, {literal(self.target)}, {self.ticket.fence}, {self.ticket.attempt}, "
            f"{literal(self.ticket.nonce)}, {literal(self.backfill_uid)}, {rows}, now(), "
            f"{_table_id(self.schema, self.table)}"
        )
        return (
            f"INSERT INTO {self._receipts} "
            "(key, target, fence, attempt, nonce, backfill, rows, at, table_id) "
            f"VALUES ({values}) ON CONFLICT (key) DO UPDATE SET fence = excluded.fence, "
            "attempt = excluded.attempt, nonce = excluded.nonce, backfill = excluded.backfill, "
            "rows = excluded.rows, at = excluded.at, table_id = excluded.table_id"
        )


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _lock_number(name: str) -> int:
    digest = hashlib.sha256(f"refill:{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
