"""A file's bytes: Parquet by row groups, JSON lines batch by batch. In memory: one row group."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from refill.connectors.kit.instants import far_rows
from refill.connectors.kit.json_form import json_lines
from refill.connectors.kit.json_form.values import bare_texts
from refill.domain.slice import REJECTS_KEPT, Reject

ROW_GROUP_ROWS = 131_072
SAMPLE_ROWS = 4096
ROW_GROUP_BYTES = 32 * 1024 * 1024  # before compression; rows of megabytes make small groups


@dataclass(frozen=True, slots=True)
class Poured:
    rows: int
    bytes: int
    rejected: int = 0
    rejects: tuple[Reject, ...] = ()


class Refused:
    """Rows that a format cannot hold, which the rest of the slice does not wait for."""

    def __init__(self, key: Sequence[str]) -> None:
        self._key = key
        self.count = 0
        self.rejects: list[Reject] = []

    def sift(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch without rows that have a timestamp beyond Arrow's range."""
        rows = far_rows(batch)
        if rows is None:
            return batch
        refused = batch.filter(rows)
        self.count += refused.num_rows
        for row in range(min(refused.num_rows, REJECTS_KEPT - len(self.rejects))):
            detail = "a timestamp after the year 294246 has no place in a Parquet file"
            key = self._key_of(refused.slice(row, 1))
            self.rejects.append(Reject(key=key, reason="timestamp out of range", detail=detail))
        kept: pa.RecordBatch = batch.filter(pc.invert(rows))
        return kept

    def _key_of(self, row: pa.RecordBatch) -> tuple[str, ...]:
        places = [row.schema.get_field_index(name) for name in self._key]
        if -1 in places:
            return ()
        return tuple(
            str(bare_texts(row.column(place), row.schema.field(place))[0]) for place in places
        )


def pour(
    file_format: str,
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    file: IO[bytes],
    timestamp_format: str = "iso8601",
    key: Sequence[str] = (),
) -> Poured:
    """Writes all batches to the file; pulls the next only when the last is on its way to disk.
    `key`: the columns that name a row which the format cannot hold."""
    refused = Refused(key)
    if file_format == "parquet":
        rows = _pour_parquet(schema, map(refused.sift, batches), file)
    else:
        rows = _pour_json_lines(batches, file, timestamp_format)
    file.flush()
    return Poured(
        rows=rows, bytes=file.tell(), rejected=refused.count, rejects=tuple(refused.rejects)
    )


def _pour_parquet(schema: pa.Schema, batches: Iterator[pa.RecordBatch], file: IO[bytes]) -> int:
    writer = _RowGroups(schema, file)
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        writer.add(batch)
    writer.close()
    return rows


class _RowGroups:
    """Collects batches into row groups; opens the file's writer with the first of them, whose
    values say how to encode the columns."""

    def __init__(self, schema: pa.Schema, file: IO[bytes]) -> None:
        self._schema = schema
        self._file = file
        self._writer: pq.ParquetWriter | None = None
        self._group: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self._group.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= ROW_GROUP_ROWS or self._bytes >= ROW_GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        self._flush()
        if self._writer is not None:
            self._writer.close()

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._group, schema=self._schema)
        # emptied first: whoever kept them would double what is in memory
        self._group.clear()
        self._rows = self._bytes = 0
        if self._writer is None:
            repetitive: Any = _repetitive_texts(table)
            self._writer = pq.ParquetWriter(
                self._file,
                self._schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=repetitive or False,
                column_encoding=_deltas(self._schema),
                store_decimal_as_integer=True,
            )
        if table.num_rows:
            self._writer.write_table(table, row_group_size=ROW_GROUP_ROWS)


def _repetitive_texts(table: pa.Table) -> list[str]:
    """Columns that a dictionary pays for. For all others it costs as much time as everything else
    together, and zstd finds the repeats anyway."""
    if table.num_rows < SAMPLE_ROWS:
        return []
    sample = table.slice(0, SAMPLE_ROWS)
    return [
        field.name
        for field in table.schema
        if (pa.types.is_string(field.type) or pa.types.is_large_string(field.type))
        and pc.count_distinct(sample.column(field.name)).as_py() <= SAMPLE_ROWS // 16
    ]


def _deltas(schema: pa.Schema) -> dict[str, str]:
    """Numbers and times by their differences: a quarter less of a file, and faster than without."""
    return {field.name: "DELTA_BINARY_PACKED" for field in schema if _is_whole(field.type)}


def _is_whole(kind: pa.DataType) -> bool:
    """Whether Parquet stores it as an integer."""
    if pa.types.is_decimal(kind):
        return bool(kind.precision <= 18)
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind))


def _pour_json_lines(
    batches: Iterator[pa.RecordBatch], file: IO[bytes], timestamp_format: str
) -> int:
    rows = 0
    for batch in batches:
        if batch.num_rows:
            file.write(json_lines(batch, timestamp_format))
            rows += batch.num_rows
    return rows
