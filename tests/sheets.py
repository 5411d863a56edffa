"""A connector for tests of the engine: a source of made-up rows, a sink of text files.

Everything that can go wrong is asked for in the options, so that it happens inside a real task.
"""

import json
import os
import time
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import pyarrow as pa

from refill.connectors.kit.contract import (
    Connector,
    Context,
    Job,
    Options,
    Sink,
    Source,
    Written,
)
from refill.connectors.kit.fields import FieldNote, Form
from refill.domain.errors import SinkUnavailable, SourceUnavailable, Superseded
from refill.domain.slice import Dated, Extent, KeyRange, Receipt, Ticket
from refill.domain.spec import DatedRead, KeyedRead, QueryRead, Read
from refill.domain.table import Column, Family, Table
from refill.planning.bounds import Bounds

NOTES = {
    "id": FieldNote(family=Family.INTEGER, system="pg", native_type="bigint"),
    "name": FieldNote(family=Family.TEXT, system="pg", native_type="text"),
    "doc": FieldNote(family=Family.JSON, form=Form.JSON, system="pg", native_type="jsonb"),
    "day": FieldNote(family=Family.DATE, system="pg", native_type="date"),
}
_ARROW = {"id": pa.int64(), "name": pa.string(), "doc": pa.string(), "day": pa.date32()}
SCHEMA = pa.schema(
    [pa.field(name, _ARROW[name], metadata=note.metadata()) for name, note in NOTES.items()]
)
COLUMNS = tuple(
    Column(name=name, type=note.native_type or "", family=note.family)
    for name, note in NOTES.items()
)
TABLE = Table(schema_name="public", name="rows", columns=COLUMNS, primary_key=("id",))


class SheetOptions(Options):
    rows: int = 10  # per slice
    path: str = ""  # where the sink writes
    read_fails_at: tuple[int, ...] = ()  # ordinals of slices
    write_fails_at: tuple[int, ...] = ()  # slice ids
    superseded_at: tuple[int, ...] = ()
    breaks_at: tuple[int, ...] = ()  # an error that is not ours
    stops_early: bool = False
    kills_at: tuple[int, ...] = ()
    seconds: float = 0.0  # how long each slice takes to write
    password: str = ""


def ordinal(extent: object) -> int:
    if isinstance(extent, Dated):
        return extent.date.toordinal()
    if isinstance(extent, KeyRange) and extent.lower:
        return int(extent.lower[0])
    return 0


class SheetSource(Source):
    def __init__(self, options: SheetOptions, context: Context) -> None:
        self.options = options

    def test(self) -> None: ...
    def catalogue(self) -> tuple[Table, ...]:
        return (TABLE,)

    def find_table(self, schema: str, name: str) -> Table | None:
        return TABLE

    def describe_query(self, query: str) -> tuple[Column, ...]:
        return COLUMNS

    def check(self, read: Read) -> None: ...
    def bounds(self, read: KeyedRead, boundaries_wanted: int) -> Bounds:
        return Bounds(rows_estimated=40_000 * 4, boundaries=tuple((str(n),) for n in range(1, 9)))

    def schema(self, read: Read) -> pa.Schema:
        return SCHEMA

    def read(self, read: Read, extent: Extent) -> Iterator[pa.RecordBatch]:
        number = ordinal(extent)
        ids = [number * 1000 + row for row in range(self.options.rows)]
        half = len(ids) // 2
        for part in (ids[:half], ids[half:]):
            yield pa.RecordBatch.from_pydict(
                {
                    "id": part,
                    "name": [f"row {n}" for n in part],
                    "doc": [json.dumps({"n": n}) for n in part],
                    "day": [date.fromordinal(max(number, 1))] * len(part),
                },
                schema=SCHEMA,
            )
            if number in self.options.read_fails_at:
                raise SourceUnavailable("The source went away.")

    def read_dates(
        self, read: DatedRead | QueryRead, dates: Sequence[date]
    ) -> Iterator[tuple[date, Iterator[pa.RecordBatch]]]:
        for day in dates:
            yield day, self.read(read, Dated(date=day))

    def close(self) -> None: ...


class SheetSink(Sink):
    def __init__(self, options: SheetOptions, context: Context) -> None:
        self.options = options
        self.root = Path(options.path)

    def test(self) -> None: ...

    def stage(self, job: Job, tickets: Sequence[Ticket]) -> list[str | None]:
        self.root.mkdir(parents=True, exist_ok=True)
        return [str(self.root / f"_{ticket.slice_id}.{ticket.nonce}") for ticket in tickets]

    def write(
        self, job: Job, ticket: Ticket, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
    ) -> Written:
        slice_id = ticket.slice_id
        if slice_id in self.options.superseded_at:
            raise Superseded("A newer attempt holds it.")
        rows: list[dict[str, object]] = []
        for batch in batches:
            rows += batch.to_pylist()
            if self.options.stops_early:
                break
            if slice_id in self.options.write_fails_at:
                raise SinkUnavailable("The sink went away.", retry_after_seconds=7)
            if slice_id in self.options.breaks_at:
                raise KeyError("secret detail")
        if slice_id in self.options.kills_at:
            os.kill(os.getpid(), 9)
        if self.options.seconds:
            time.sleep(self.options.seconds)
        text = json.dumps(
            {
                "rows": rows,
                "schema": {
                    field.name: {k.decode(): v.decode() for k, v in (field.metadata or {}).items()}
                    | {"type": str(field.type)}
                    for field in schema
                },
                "pid": os.getpid(),
            },
            default=str,
        )
        staged = ticket.staging or str(self.root / f"_{slice_id}.{ticket.nonce}")
        Path(staged).write_text(text)
        return Written(rows_delivered=len(rows), bytes_written=len(text), staged=staged)

    def publish(self, job: Job, deliveries: Sequence[tuple[Ticket, Receipt]]) -> None:
        for ticket, receipt in deliveries:
            Path(str(receipt.staged)).replace(self.root / f"{ticket.slice_id}.json")

    def close(self) -> None: ...


SHEETS = Connector(
    type="sheets",
    title="Sheets",
    options_model=SheetOptions,
    is_source=True,
    is_sink=True,
    is_destination=True,
    open_source=SheetSource,
    open_sink=SheetSink,
)
