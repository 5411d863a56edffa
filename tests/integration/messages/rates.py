"""How fast messages are made and delivered, and where the time goes.

`python -m tests.integration.messages.rates` encodes the benchmark's kind of table from memory;
with `--kafka` it also delivers it to a broker of its own, a transaction per 250,000 rows.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import polars as pl
import pyarrow as pa

from refill.connectors.kafka import KafkaOptions
from refill.connectors.kafka.sink import KafkaSink
from refill.connectors.kit.envelope import Envelope
from refill.connectors.kit.json_form import json_lines
from refill.domain.table import Table
from tests.integration.messages.orders import make_job, make_ticket
from tests.servers.kafka import running_kafka
from tests.specs import pg_column

ROWS = 250_000
BATCH = 65_536
EVENTS = Table(
    schema_name="public",
    name="events",
    columns=(pg_column(name="id", type="bigint", oid=20, not_null=True),),
    primary_key=("id",),
)
MESSAGE = {
    "consumer": {"id": str(UUID(int=1)), "name": "events to kafka", "annotations": {}},
    "database": {
        "id": str(UUID(int=2)),
        "name": "shop",
        "annotations": {},
        "database": "shop",
        "hostname": "db.internal",
    },
}


def make_table(rows: int) -> pa.Table:
    """Eleven columns: bigint ×2, text ×2, numeric(12,2), int, jsonb, two timestamps, date, uuid."""
    few = 1000
    noon = datetime(2024, 5, 17, 12, tzinfo=UTC)
    stamps = [noon + timedelta(seconds=n, microseconds=n) for n in range(few)]
    columns = {
        "id": pa.array(range(rows), pa.int64()),
        "account_id": pa.array(range(rows), pa.int64()),
        "name": ([f"customer number {n}" for n in range(few)], pa.string()),
        "note": ([f"what was said about {n}, at some length" for n in range(few)], pa.string()),
        "amount": ([Decimal(n) / 100 for n in range(few)], pa.decimal128(12, 2)),
        "quantity": (list(range(few)), pa.int32()),
        "payload": (
            [f'{{"kind": "order", "lines": [{n}, 2, 3]}}' for n in range(few)],
            pa.string(),
        ),
        "created_at": (stamps, pa.timestamp("us", "UTC")),
        "local_at": ([stamp.replace(tzinfo=None) for stamp in stamps], pa.timestamp("us")),
        "day": ([date(2024, 1, 1) + timedelta(days=n) for n in range(few)], pa.date32()),
        "token": ([str(UUID(int=n * 2**96 + n)) for n in range(few)], pa.string()),
    }
    index = pa.array([n % few for n in range(rows)], pa.int32())
    arrays = {
        name: made if isinstance(made, pa.Array) else pa.array(*made).take(index)
        for name, made in columns.items()
    }
    table = pa.table(arrays)
    fields = [
        field.with_metadata({b"form": b"json" if field.name == "payload" else b"plain"})
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


@contextmanager
def timed(what: str, rows: int) -> Iterator[None]:
    began, cpu = time.perf_counter(), time.process_time()
    yield
    wall, used = time.perf_counter() - began, time.process_time() - cpu
    say(f"{what:52} {rows / wall / 1000:7.0f}k rows/s  {used / rows * 1e6:6.2f} µs CPU a row")


def measure_encoding(batches: list[pa.RecordBatch], rows: int) -> None:
    job = make_job(table=EVENTS, message=MESSAGE)
    steps: dict[str, Callable[[Envelope, pa.RecordBatch], Any]] = {
        "JSON lines": lambda envelope, part: json_lines(part),
        "messages": lambda envelope, part: envelope.wrap(part).values(),
        "messages as what produce_batch takes": lambda envelope, part: handed(envelope, part),
    }
    for what, step in steps.items():
        for warm in (True, False):
            envelope = Envelope(job, make_ticket(), batches[0].schema)
            with timed(what, rows) if not warm else contextmanager(lambda: iter([None]))():
                for batch in batches:
                    for part in envelope.portions(batch):
                        step(envelope, part)
    size = Envelope(job, make_ticket(), batches[0].schema).wrap(batches[0]).values()
    say(f"a message has {size.str.len_bytes().mean():.0f} bytes")


def handed(envelope: Envelope, part: pa.RecordBatch) -> list[dict[str, bytes]]:
    messages = envelope.wrap(part)
    assert messages.key is not None
    values = messages.values().cast(pl.Binary).to_list()
    keys = messages.key.cast(pl.Binary).to_list()
    return [{"key": key, "value": value} for key, value in zip(keys, values, strict=True)]


def measure_kafka(batches: list[pa.RecordBatch], rows: int) -> None:
    with running_kafka() as server:
        for compression in ("lz4", "none", "zstd"):
            topic = server.create_topic()
            options = KafkaOptions.model_validate(
                {"hosts": server.hosts, "topic": topic, "compression": compression}
            )
            sink = KafkaSink(options)
            job = make_job(table=EVENTS, message=MESSAGE)
            for index in range(3):
                with timed(f"delivered to Kafka, {compression}, slice {index + 1}", rows):
                    sink.write(job, make_ticket(index), batches[0].schema, iter(batches))
            sink.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kafka", action="store_true")
    chosen = parser.parse_args()
    batches = make_table(ROWS).combine_chunks().to_batches(max_chunksize=BATCH)
    measure_encoding(batches, ROWS)
    if chosen.kafka:
        measure_kafka(batches, ROWS)


if __name__ == "__main__":
    main()
