"""PostgreSQL as sink (rows are replaced by their key) and destination (a date is replaced whole).

A slice is one transaction with its receipt: it is there, or it is not, and the receipt says by
which attempt. Rows that were deleted at the source stay in a sink's table.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from refill.connectors.kit.contract import Context, Job, Sink, Written
from refill.connectors.postgres.ddl import (
    DATE_COLUMN,
    Target,
    ensure_target,
    read_target,
    source_key,
    target_name,
)
from refill.connectors.postgres.options import PostgresOptions
from refill.connectors.postgres.quoting import identifier, literal, names, row
from refill.connectors.postgres.receipts import Claim, create_receipts, find_missing
from refill.connectors.postgres.sink_errors import sink_errors
from refill.connectors.postgres.sink_session import SinkSession
from refill.domain.errors import SinkRefused, SinkUnavailable, Superseded
from refill.domain.slice import Dated, KeyRange, Slice, Ticket, Whole
from refill.domain.spec import SinkSpec

if TYPE_CHECKING:
    import pyarrow as pa


class PostgresSink(Sink):
    def __init__(self, options: PostgresOptions, context: Context) -> None:
        self._options = options
        self._network = context.network
        self._session: SinkSession | None = None
        self._targets: dict[tuple[int, str], Target] = {}

    def test(self) -> None:
        with sink_errors("connect to the destination"):
            session = self._open()
            read_only = session.row("SELECT current_setting('transaction_read_only')")
            session.rollback()
        if read_only == ("on",):
            raise SinkRefused("The destination only lets itself be read: it is a standby server.")

    def prepare(self, job: Job, schema: "pa.Schema") -> None:
        place, name = target_name(self._options, job.spec)
        with self._transaction(f"prepare {place}.{name}") as session:
            ensure_target(session, place, name, job, schema)
            create_receipts(session, place)
            read_target(session, place, name, job, schema)
            session.commit()

    def write(
        self, job: Job, ticket: Ticket, schema: "pa.Schema", batches: Iterator["pa.RecordBatch"]
    ) -> Written:
        place, name = target_name(self._options, job.spec)
        claim = Claim.of(place, name, job, ticket)
        try:
            with self._transaction(f"write {place}.{name}") as session:
                return self._write(session, claim, job, ticket, schema, batches)
        except SinkUnavailable as error:
            # a newer attempt ends the connections of older ones: say that, if that is what it was
            if self._overtaken(claim):
                raise Superseded("A newer attempt has taken over this slice.") from error
            raise

    def missing(self, job: Job, slices: Sequence[Slice]) -> list[Slice]:
        place, name = target_name(self._options, job.spec)
        with self._transaction(f"look at {place}.{name}") as session:
            found = find_missing(session, place, name, job, slices)
            session.rollback()
            return found

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _write(
        self,
        session: SinkSession,
        claim: Claim,
        job: Job,
        ticket: Ticket,
        schema: "pa.Schema",
        batches: Iterator["pa.RecordBatch"],
    ) -> Written:
        from refill.connectors.postgres.sink_delivery import Delivery, add_date

        before = claim.take(session)
        target = self._target(session, job, schema)
        keyless = isinstance(job.spec, SinkSpec) and not target.key
        if keyless and before is not None and before.same_table and before.fence == ticket.fence:
            # such rows cannot be told apart, so what an earlier attempt committed is the delivery
            session.rollback()
            return Written(rows_delivered=before.rows, delivered_before=True)
        if target.date_column == DATE_COLUMN and isinstance(ticket.extent, Dated):
            schema, batches = add_date(schema, batches, ticket.extent.date)
        delivery = Delivery(
            session=session,
            target=target,
            schema=schema,
            key=source_key(job.spec),
            max_rejects=job.spec.max_rejects,
            direct=self._cleared(session, target, job, ticket),
        )
        delivery.deliver(batches)
        claim.settle(session, delivery.rows_delivered)
        return Written(
            rows_delivered=delivery.rows_delivered,
            bytes_written=delivery.bytes_copied,
            rows_rejected=delivery.rows_rejected,
            rejects=tuple(delivery.rejects),
        )

    def _cleared(self, session: SinkSession, target: Target, job: Job, ticket: Ticket) -> bool:
        """Removes what a date held; whether the slice's range is empty now, as far as one look
        into an index tells. When it tells wrong, the rows are upserted all the same."""
        if target.date_column is not None:
            assert isinstance(ticket.extent, Dated)
            session.execute(
                f"DELETE FROM {target.sql} WHERE {identifier(target.date_column)} = "
                f"{literal(ticket.extent.date.isoformat())}"
            )
            return True
        if not target.key:
            return True
        extent = KeyRange() if isinstance(ticket.extent, Whole) else ticket.extent
        if not isinstance(extent, KeyRange) or job.sink_spec.read.sort_columns != target.key:
            return False
        key = row(names(target.key))
        bounds = []
        if extent.lower is not None:
            sign = ">=" if extent.lower_inclusive else ">"
            bounds.append(f"{key} {sign} {row([literal(part) for part in extent.lower])}")
        if extent.upper is not None:
            bounds.append(f"{key} <= {row([literal(part) for part in extent.upper])}")
        where = f" WHERE {' AND '.join(bounds)}" if bounds else ""
        return session.row(f"SELECT 1 FROM {target.sql}{where} LIMIT 1") is None

    def _target(self, session: SinkSession, job: Job, schema: "pa.Schema") -> Target:
        place, name = target_name(self._options, job.spec)
        known = (job.backfill_id, f"{place}.{name}")
        if known not in self._targets:
            self._targets[known] = read_target(session, place, name, job, schema)
        return self._targets[known]

    def _overtaken(self, claim: Claim) -> bool:
        try:
            with self._transaction("read the receipts") as session:
                found = claim.overtaken(session)
                session.rollback()
                return found
        except (SinkUnavailable, SinkRefused):
            return False

    def _open(self) -> SinkSession:
        if self._session is not None and not self._session.alive():
            self.close()
        if self._session is None:
            self._session = SinkSession(self._options, network=self._network)
        return self._session

    @contextmanager
    def _transaction(self, doing: str) -> Iterator[SinkSession]:
        with sink_errors(doing):
            session = self._open()
            try:
                yield session
            except BaseException:
                # whatever state it is in, it holds our locks: the next slice gets a fresh one
                self.close()
                raise
