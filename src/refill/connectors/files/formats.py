"""A file's bytes: Parquet by row groups, JSON lines batch by batch. In memory: one row group."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from refill.connectors.json_form import json_lines

ROW_GROUP_ROWS = 131_072
ROW_GROUP_BYTES = 32 * 1024 * 1024  # before compression; rows of megabytes make small groups


@dataclass(frozen=True, slots=True)
class Poured:
    rows: int
    bytes: int


def pour(
    file_format: str,
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    file: IO[bytes],
    timestamp_format: str = "iso8601",
) -> Poured:
    """Writes all batches to the file; pulls the next only when the last is on its way to disk."""
    if file_format == "parquet":
        rows = _pour_parquet(schema, batches, file)
    else:
        rows = _pour_json_lines(batches, file, timestamp_format)
    file.flush()
    return Poured(rows=rows, bytes=file.tell())


def _pour_parquet(schema: pa.Schema, batches: Iterator[pa.RecordBatch], file: IO[bytes]) -> int:
    rows = 0
    with pq.ParquetWriter(file, schema, compression="zstd", compression_level=1) as writer:
        group: list[pa.RecordBatch] = []
        group_rows = group_bytes = 0
        for batch in batches:
            group.append(batch)
            group_rows += batch.num_rows
            group_bytes += batch.nbytes
            rows += batch.num_rows
            if group_rows >= ROW_GROUP_ROWS or group_bytes >= ROW_GROUP_BYTES:
                _write_group(writer, schema, group)
                group_rows = group_bytes = 0
        _write_group(writer, schema, group)
    return rows


def _write_group(writer: pq.ParquetWriter, schema: pa.Schema, group: list[pa.RecordBatch]) -> None:
    """Empties the group too: whoever kept it would double what is in memory."""
    table = pa.Table.from_batches(group, schema=schema)
    group.clear()
    if table.num_rows:
        writer.write_table(table, row_group_size=ROW_GROUP_ROWS)


def _pour_json_lines(
    batches: Iterator[pa.RecordBatch], file: IO[bytes], timestamp_format: str
) -> int:
    rows = 0
    for batch in batches:
        if batch.num_rows:
            file.write(json_lines(batch, timestamp_format))
            rows += batch.num_rows
    return rows
