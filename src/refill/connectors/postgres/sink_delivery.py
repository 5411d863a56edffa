"""Brings the batches of one slice into the table, inside the slice's transaction.

Straight into the table by COPY where no row can be there already; else through a staging table
and an upsert. A row that the table cannot take is found by halving the batch it came in, never by
sending rows one by one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import adbc_driver_manager
import pyarrow as pa

from refill.connectors.postgres.copy import ColumnPlan, encode_batch, holds_nan, plan_columns
from refill.connectors.postgres.ddl import DATE_COLUMN, Target
from refill.connectors.postgres.quoting import identifier, names
from refill.connectors.postgres.sink_errors import is_value_error, line_of, reason_of, sqlstate
from refill.connectors.postgres.sink_session import SinkSession
from refill.domain.errors import TooManyRejects
from refill.domain.slice import REJECTS_KEPT, Reject

_STAGE = "_refill_stage"
_UNIQUE_VIOLATION = "23505"


@dataclass(slots=True)
class Delivery:
    session: SinkSession
    target: Target
    schema: pa.Schema
    key: tuple[str, ...]  # of the source: what a reject is named by
    max_rejects: int
    direct: bool  # the slice's range is empty at the destination
    rows_delivered: int = 0
    rows_rejected: int = 0
    bytes_copied: int = 0
    rejects: list[Reject] = field(default_factory=list)
    _plans: list[ColumnPlan] = field(init=False)
    _staged: bool = field(init=False, default=False)
    _filled: bool = field(init=False, default=False)
    _saved: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._plans = plan_columns(self.schema, self.target)
        self.direct = self.direct and all(plan.direct for plan in self._plans)

    def deliver(self, batches: Iterator[pa.RecordBatch]) -> None:
        for batch in batches:
            if batch.num_rows:
                self._deliver_batch(batch)

    def _deliver_batch(self, batch: pa.RecordBatch) -> None:
        encoded = encode_batch(batch, self._plans)
        if self.direct and not holds_nan(batch, self._plans):
            error = self._tried(encoded, self._copy_directly)
            if error is None:
                self._count(encoded)
                return
            if sqlstate(error) == _UNIQUE_VIOLATION:
                # rows are there after all: from here on they are replaced
                self.direct = False
        self._deliver_staged(batch, encoded)

    def _deliver_staged(self, batch: pa.RecordBatch, encoded: pa.RecordBatch) -> None:
        if not self._staged:
            columns = ", ".join(f"{identifier(p.name)} {p.staged_as}" for p in self._plans)
            self.session.execute(f"CREATE TEMP TABLE {_STAGE} ({columns}) ON COMMIT DROP")
            self._staged = True
        # pieces still to come, the first of them last: a list, since every row may be a reject
        pending = [(0, batch.num_rows)]
        while pending:
            start, end = pending.pop()
            if end - start < batch.num_rows:
                encoded = encode_batch(batch.slice(start, end - start), self._plans)
            error = self._tried(encoded, self._upsert)
            if error is None:
                self._filled = True
                self._count(encoded)
                continue
            guilty = _guilty(start, end, error)
            if guilty is None:
                middle = (start + end) // 2
                pending += [(middle, end), (start, middle)]
                continue
            self._reject(batch.slice(guilty, 1), error)
            pending += [(a, b) for a, b in ((guilty + 1, end), (start, guilty)) if a < b]

    def _tried(
        self, encoded: pa.RecordBatch, action: Callable[[pa.RecordBatch], None]
    ) -> Exception | None:
        """None when it went in; the error when a value was at fault; raises everything else."""
        # the last one is released only now: a slice of one batch is spared the trip
        again = "RELEASE SAVEPOINT refill; " if self._saved else ""
        self.session.execute(f"{again}SAVEPOINT refill")
        self._saved = True
        try:
            action(encoded)
        except adbc_driver_manager.Error as raised:
            error: Exception = raised
            if not is_value_error(error):
                raise
            self.session.execute("ROLLBACK TO SAVEPOINT refill")
            return error
        return None

    def _copy_directly(self, encoded: pa.RecordBatch) -> None:
        self.session.copy(self.target.schema, self.target.name, encoded)

    def _upsert(self, encoded: pa.RecordBatch) -> None:
        if self._filled:
            self.session.execute(f"TRUNCATE pg_temp.{_STAGE}")
        self.session.copy("pg_temp", _STAGE, encoded)
        self.session.execute(self._insert_sql())

    def _insert_sql(self) -> str:
        columns = names(plan.name for plan in self._plans)
        sql = (
            f"INSERT INTO {self.target.sql} ({', '.join(columns)}) OVERRIDING SYSTEM VALUE "
            f"SELECT {', '.join(plan.select for plan in self._plans)} FROM pg_temp.{_STAGE}"
        )
        if not self.target.key:
            return sql
        key = names(self.target.key)
        rest = [column for column in columns if column not in key]
        what = (
            f"UPDATE SET {', '.join(f'{column} = excluded.{column}' for column in rest)}"
            if rest
            else "NOTHING"
        )
        return f"{sql} ON CONFLICT ({', '.join(key)}) DO {what}"

    def _count(self, encoded: pa.RecordBatch) -> None:
        self.rows_delivered += encoded.num_rows
        self.bytes_copied += encoded.nbytes

    def _reject(self, row: pa.RecordBatch, error: BaseException) -> None:
        self.rows_rejected += 1
        reject = Reject(
            key=tuple(_text(row.column(name)[0]) for name in self.key if name in row.schema.names),
            reason=reason_of(error),
        )
        if len(self.rejects) < REJECTS_KEPT:
            self.rejects.append(reject)
        if self.rows_rejected > self.max_rejects:
            first = self.rejects[0]
            named = ", ".join(str(part) for part in first.key) or "without a key"
            raise TooManyRejects(
                f"{self.rows_rejected} row(s) could not be written to {self.target.shown}, and "
                f"{self.max_rejects} are allowed; the first one ({named}): {first.reason}.",
                self.rejects,
                self.rows_rejected,
            )


def _guilty(start: int, end: int, error: BaseException) -> int | None:
    """Which row is at fault: COPY names it; a cast on the way from the stage does not, and its
    rows are halved until one is left."""
    line = line_of(error)
    if line is not None and start + line < end:
        return start + line
    return start if end - start == 1 else None


def add_date(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], day: date
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Adds the column that refill keeps the date in."""
    dated = schema.append(pa.field(DATE_COLUMN, pa.date32()))
    value = pa.scalar(day, pa.date32())
    return dated, (
        pa.RecordBatch.from_arrays([*b.columns, pa.repeat(value, b.num_rows)], schema=dated)
        for b in batches
    )


def _text(scalar: Any) -> str | None:
    value = scalar.as_py()
    return None if value is None else str(value)
