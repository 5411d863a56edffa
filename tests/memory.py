"""A system in memory, source and sink at once: for a worker without a JVM and without servers.

What it holds outlives its connections, as with a real one. `trouble` makes it fail or stand still;
its points are "check", "read" (before each batch), "prepare", "stage", "write" (at each batch),
"written" (after the last one), "publish", "delivered", "missing", "seal" and "discard".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from refill.connectors.kit.contract import (
    Connector,
    Context,
    Guarantee,
    Job,
    Options,
    Sink,
    Source,
    Written,
)
from refill.domain.errors import SinkUnavailable, SourceUnavailable, Superseded
from refill.domain.slice import Dated, Extent, KeyRange, NullKeys, Receipt, Slice, Ticket
from refill.domain.spec import KeyedRead, QueryRead, Read
from refill.domain.table import Column, Family, Table
from refill.planning.bounds import Bounds
from tests.trouble import Closed, Connection, Trouble

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("day", pa.date32())])
TABLE = Table(
    schema_name="public",
    name="rows",
    columns=(
        Column(name="id", type="integer", family=Family.INTEGER),
        Column(name="day", type="date", family=Family.DATE),
    ),
    primary_key=("id",),
)
DAY = date(2024, 1, 1)
WORTH_A_SLICE = 20_000  # rows that are said to be there, so that a plan cuts at every key given

Attempt = tuple[int, int]  # slice id, attempt


class MemoryOptions(Options):
    password: str = ""


@dataclass
class MemoryTable:
    """Batches as they are read, and the keys that a plan may cut at."""

    batches: Sequence[pa.RecordBatch]
    cuts: tuple[int, ...] = ()
    table: Table = TABLE


class Memory:
    def __init__(self, *tables: MemoryTable) -> None:
        self.tables = {each.table.full_name: each for each in tables}
        self.trouble = Trouble()
        self.opened = 0  # connections
        self.staged: dict[Attempt, list[dict[str, Any]]] = {}
        self.delivered: dict[Attempt, list[dict[str, Any]]] = {}
        self.sealed: list[int] = []  # backfill ids
        self.discarded: list[int] = []
        self.attempts: dict[int, int] = {}  # the newest that was staged, by slice
        self.fences: dict[str, int] = {}
        self.backfills: dict[int, set[int]] = {}  # slices of each

    def connector(self, type_name: str = "memory", **changes: Any) -> Connector:
        return Connector(
            **{
                "type": type_name,
                "title": "Memory",
                "options_model": MemoryOptions,
                "is_source": True,
                "is_sink": True,
                "is_destination": True,
                "guarantee": Guarantee.REPLACE,
                "open_source": lambda options, context: MemorySource(self, context),
                "open_sink": lambda options, context: MemorySink(self, context),
                **changes,
            }
        )

    def ids(self) -> list[int]:
        """Of every row ever delivered, repeats included."""
        return sorted(row["id"] for rows in self.delivered.values() for row in rows)


class MemorySource(Source):
    def __init__(self, memory: Memory, context: Context) -> None:
        self._memory = memory
        self._connection = Connection()
        memory.opened += 1

    def test(self) -> None: ...
    def catalogue(self) -> tuple[Table, ...]:
        return tuple(each.table for each in self._memory.tables.values())

    def find_table(self, schema: str, name: str) -> Table | None:
        found = self._memory.tables.get(f"{schema}.{name}")
        return None if found is None else found.table

    def check(self, read: Read) -> None:
        self._meet("check")

    def bounds(self, read: KeyedRead, boundaries_wanted: int) -> Bounds:
        cuts = self._table(read).cuts
        return Bounds(
            rows_estimated=WORTH_A_SLICE * (len(cuts) + 1),
            boundaries=tuple((str(key),) for key in cuts),
        )

    def schema(self, read: Read) -> pa.Schema:
        return SCHEMA

    def read(self, read: Read, extent: Extent) -> Iterator[pa.RecordBatch]:
        for batch in self._table(read).batches:
            rows = batch.filter(_mask(batch, extent))
            if rows.num_rows:
                self._meet("read")
                yield rows

    def close(self) -> None:
        self._memory.trouble.close(self._connection)

    def _table(self, read: Read) -> MemoryTable:
        assert not isinstance(read, QueryRead)
        return self._memory.tables[read.name]

    def _meet(self, point: str) -> None:
        try:
            self._memory.trouble.meet(point, self._connection)
        except Closed as exc:
            raise SourceUnavailable("The connection to the source was closed.") from exc


class MemorySink(Sink):
    """Stages per attempt and publishes; an older attempt, or an older fence, is Superseded."""

    def __init__(self, memory: Memory, context: Context) -> None:
        self._memory = memory
        self._connection = Connection()
        memory.opened += 1

    def test(self) -> None: ...
    def prepare(self, job: Job, schema: pa.Schema) -> None:
        self._meet("prepare")

    def stage(self, job: Job, tickets: Sequence[Ticket]) -> list[str | None]:
        self._meet("stage")
        memory = self._memory
        for ticket in tickets:
            self._hold(ticket)
            memory.attempts[ticket.slice_id] = ticket.attempt
            memory.fences[ticket.target] = ticket.fence
            memory.backfills.setdefault(job.backfill_id, set()).add(ticket.slice_id)
            for older in range(ticket.attempt):
                memory.staged.pop((ticket.slice_id, older), None)
        return [f"{ticket.slice_id}/{ticket.attempt}" for ticket in tickets]

    def write(
        self, job: Job, ticket: Ticket, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
    ) -> Written:
        rows: list[dict[str, Any]] = []
        for batch in batches:
            self._meet("write")
            rows += batch.to_pylist()
        self._meet("written")
        self._hold(ticket)
        self._memory.staged[ticket.slice_id, ticket.attempt] = rows
        return Written(rows_delivered=len(rows), bytes_written=8 * len(rows), staged=ticket.staging)

    def publish(self, job: Job, deliveries: Sequence[tuple[Ticket, Receipt]]) -> None:
        self._meet("publish")
        for ticket, _ in deliveries:
            self._hold(ticket)
            attempt = (ticket.slice_id, ticket.attempt)
            if attempt not in self._memory.delivered:
                self._memory.delivered[attempt] = self._memory.staged.pop(attempt)

    def delivered(self, job: Job, tickets: Sequence[Ticket]) -> list[Written | None]:
        self._meet("delivered")
        return [self._found(ticket) for ticket in tickets]

    def missing(self, job: Job, slices: Sequence[Slice]) -> list[Slice]:
        self._meet("missing")
        there = {slice_id for slice_id, _ in self._memory.delivered}
        return [part for part in slices if part.id not in there]

    def seal(self, job: Job) -> None:
        self._meet("seal")
        self._memory.sealed.append(job.backfill_id)

    def discard(self, job: Job) -> None:
        self._meet("discard")
        for slice_id in self._memory.backfills.get(job.backfill_id, ()):
            for attempt in range(self._memory.attempts[slice_id] + 1):
                self._memory.staged.pop((slice_id, attempt), None)
        self._memory.discarded.append(job.backfill_id)

    def close(self) -> None:
        self._memory.trouble.close(self._connection)

    def _found(self, ticket: Ticket) -> Written | None:
        for attempt in range(ticket.attempt, 0, -1):
            rows = self._memory.delivered.get((ticket.slice_id, attempt))
            if rows is not None:
                return Written(rows_delivered=len(rows), delivered_before=True)
        return None

    def _hold(self, ticket: Ticket) -> None:
        newest = self._memory.attempts.get(ticket.slice_id, 0)
        fence = self._memory.fences.get(ticket.target, 0)
        if ticket.attempt < newest or ticket.fence < fence:
            raise Superseded("A newer attempt holds it.")

    def _meet(self, point: str) -> None:
        try:
            self._memory.trouble.meet(point, self._connection)
        except Closed as exc:
            raise SinkUnavailable("The connection to the sink was closed.") from exc


def batch_of(first: int, count: int, day: date = DAY) -> pa.RecordBatch:
    """Rows with the ids first, first + 1, …, all of one day."""
    return pa.RecordBatch.from_pydict(
        {"id": list(range(first, first + count)), "day": [day] * count}, schema=SCHEMA
    )


def _mask(batch: pa.RecordBatch, extent: object) -> Any:
    if isinstance(extent, Dated):
        return pc.equal(batch.column("day"), pa.scalar(extent.date, pa.date32()))
    keys = batch.column("id")
    everything = pc.is_valid(keys)
    if isinstance(extent, NullKeys):
        return pc.invert(everything)
    if not isinstance(extent, KeyRange):
        return everything
    if extent.lower is not None:
        above = pc.greater_equal if extent.lower_inclusive else pc.greater
        everything = pc.and_(everything, above(keys, int(extent.lower[0])))
    if extent.upper is not None:
        everything = pc.and_(everything, pc.less_equal(keys, int(extent.upper[0])))
    return everything
