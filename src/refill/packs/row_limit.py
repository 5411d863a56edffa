"""Rows that are too large to be carried on: set aside, with their keys."""

import dataclasses
from typing import Any

import pyarrow as pa

from refill.connectors.kit.contract import Written
from refill.domain.slice import REJECTS_KEPT, Reject
from refill.domain.spec import QueryRead, Spec


class RowLimit:
    """Of one slice. A batch that is smaller than one row may be is not looked into."""

    def __init__(self, limit_bytes: int, spec: Spec) -> None:
        self._limit_bytes = limit_bytes
        self._key = () if isinstance(spec.read, QueryRead) else spec.read.table.key
        self.rows_rejected = 0
        self._rejects: list[Reject] = []

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.nbytes <= self._limit_bytes:
            return batch
        sizes = [batch.slice(row, 1).nbytes for row in range(batch.num_rows)]
        for row, size in enumerate(sizes):
            if size > self._limit_bytes:
                self._set_aside(batch, row, size)
        fits: Any = pa.array([size <= self._limit_bytes for size in sizes], pa.bool_())
        kept: pa.RecordBatch = batch.filter(fits)
        return kept

    def account(self, written: Written) -> Written:
        """With what never reached the sink."""
        if not self.rows_rejected or written.delivered_before:
            return written
        return dataclasses.replace(
            written,
            rows_rejected=written.rows_rejected + self.rows_rejected,
            rejects=(*self._rejects, *written.rejects)[:REJECTS_KEPT],
        )

    def _set_aside(self, batch: pa.RecordBatch, row: int, size: int) -> None:
        self.rows_rejected += 1
        if len(self._rejects) < REJECTS_KEPT:
            names = [name for name in self._key if name in batch.schema.names]
            values = [batch.column(name)[row].as_py() for name in names]
            key = tuple(None if value is None else str(value) for value in values)
            detail = f"{size} bytes; {self._limit_bytes} are allowed"
            self._rejects.append(Reject(key=key, reason="row too large", detail=detail))
