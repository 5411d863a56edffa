"""A table, a backfill of it, and its rows, for the tests of message sinks."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pyarrow as pa

from refill.connectors.kit.contract import Job
from refill.domain.slice import Ticket, Whole
from refill.domain.table import Table
from tests.specs import build_spec, pg_column

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("note", pa.string())])
ORDERS = Table(
    schema_name="public",
    name="orders",
    columns=(
        pg_column(name="id", type="bigint", oid=20, not_null=True),
        pg_column(name="note", type="text", oid=25),
    ),
    primary_key=("id",),
)


def make_job(backfill_id: int = 1, **changes: Any) -> Job:
    fields: dict[str, Any] = {
        "database_id": "11111111-1111-4111-8111-111111111111",
        "database_name": "shop",
        "table": ORDERS,
        "columns": ("id", "note"),
        "sort_columns": ("id",),
        "sink_type": "kafka",
    }
    spec = build_spec(**fields | changes)
    return Job(backfill_id=backfill_id, backfill_uid=str(uuid4()), spec=spec)


def make_ticket(index: int = 0, attempt: int = 1) -> Ticket:
    return Ticket(
        slice_id=index + 1,
        index=index,
        extent=Whole(),
        attempt=attempt,
        target="sink:1/public.orders",
        fence=1,
        nonce=uuid4().hex,
    )


def rows_of(index: int, rows: int, batch: int = 1000, note: str = "x") -> Iterator[pa.RecordBatch]:
    """The rows of the index-th slice, in batches."""
    for start in range(index * rows, (index + 1) * rows, batch):
        ids = list(range(start, min(start + batch, (index + 1) * rows)))
        yield pa.RecordBatch.from_pydict({"id": ids, "note": [note] * len(ids)}, schema=SCHEMA)
