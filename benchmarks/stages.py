"""Where a slice's CPU goes: the driver, the conversions, Parquet; and what other encodings cost.

python -m benchmarks.stages [rows]

One process, the least of five passes; the figures of docs/explanation/performance.md.
"""

import io
import sys
import time
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.refill_server import postgres_fields
from benchmarks.source import benchmark_server, make_table
from refill.connectors.files import formats
from refill.connectors.kit.contract import Context
from refill.connectors.postgres.options import PostgresOptions
from refill.connectors.postgres.source import PostgresSource
from refill.connectors.postgres.values import Converter
from refill.domain.slice import Whole
from refill.domain.spec import KeyedRead

PASSES = 5


class Stopwatch:
    """CPU seconds of this process while the block runs, added up."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._began = time.process_time()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.process_time() - self._began


def main(rows: int) -> None:
    with benchmark_server() as server:
        url = server.create_database("stages")
        make_table(url, rows)
        options = PostgresOptions(**postgres_fields(url))
        source = PostgresSource(options, Context(team_id=1, files_root="/nowhere"))
        read = _read(source)
        stages = [_slice(source, read) for _ in range(PASSES)]
        table = pa.Table.from_batches(source.read(read, Whole()))
        source.close()
    _print("stage", "CPU s")
    for stage in stages[0]:
        _print(stage, f"{min(found[stage] for found in stages):.2f}")
    _print("encoding", "CPU s", "bytes a row")
    encodings = _encodings(table)
    # in turn: the machine's speed changes within seconds
    passes = [
        {what: _written(table, options) for what, options in encodings.items()}
        for _ in range(PASSES)
    ]
    for what in encodings:
        seconds, size = min(found[what] for found in passes)
        _print(what, f"{seconds:.2f}", f"{size / table.num_rows:.0f}")


def _read(source: PostgresSource) -> KeyedRead:
    table = source.find_table("public", "orders")
    assert table is not None
    return KeyedRead(table=table, sort_columns=table.key)


def _slice(source: PostgresSource, read: KeyedRead) -> dict[str, float]:
    """One slice of the whole table, as a task reads and writes it."""
    reading, converting, whole = Stopwatch(), Stopwatch(), Stopwatch()
    convert = Converter.convert

    def converted(self: Converter, batch: pa.RecordBatch) -> pa.RecordBatch:
        with converting:
            return convert(self, batch)

    with patch.object(Converter, "convert", converted), whole:
        batches = source.read(read, Whole())
        with reading:
            first = next(batches)
        formats.pour("parquet", first.schema, _timed(first, batches, reading), io.BytesIO())
    return {
        "driver": reading.seconds - converting.seconds,
        "conversions": converting.seconds,
        "Parquet": whole.seconds - reading.seconds,
    }


def _timed(
    first: pa.RecordBatch, rest: Iterator[pa.RecordBatch], watch: Stopwatch
) -> Iterator[pa.RecordBatch]:
    yield first
    while True:
        with watch:
            batch = next(rest, None)
        if batch is None:
            return
        yield batch


def _encodings(table: pa.Table) -> dict[str, dict[str, Any]]:
    repetitive = formats._repetitive_texts(table)
    kept: dict[str, Any] = {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": repetitive or False,
        "column_encoding": formats._deltas(table.schema),
        "store_decimal_as_integer": True,
    }
    plain = {**kept, "column_encoding": None, "store_decimal_as_integer": False}
    others = [name for name in table.column_names if name not in repetitive]
    texts = {
        name: "DELTA_LENGTH_BYTE_ARRAY"
        for name in others
        if pa.types.is_string(table.schema.field(name).type)
        or pa.types.is_large_string(table.schema.field(name).type)
    }
    return {
        "as it is": kept,
        "numbers and times plain": plain,
        "texts by their lengths too": {**kept, "column_encoding": kept["column_encoding"] | texts},
        "dictionaries for all": {**plain, "use_dictionary": True},
        **{
            f"plain, {codec}": {**plain, "compression": codec, "compression_level": None}
            for codec in ("lz4", "snappy", "none")
        },
        "plain, without statistics": {**plain, "write_statistics": False},
        "plain, pages of 256 kB": {**plain, "data_page_size": 256 * 1024},
        "plain, pages of 4 MB": {**plain, "data_page_size": 4 * 1024 * 1024},
        "plain, pages of version 2": {**plain, "data_page_version": "2.0"},
    }


def _written(table: pa.Table, options: dict[str, Any]) -> tuple[float, int]:
    """CPU seconds, and bytes."""
    file, watch = io.BytesIO(), Stopwatch()
    with watch:
        pq.write_table(table, file, row_group_size=formats.ROW_GROUP_ROWS, **options)
    return watch.seconds, file.tell()


def _print(*cells: str) -> None:
    sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
