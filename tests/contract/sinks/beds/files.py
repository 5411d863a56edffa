"""Files below a temporary root, read as a consumer would: through the pointer, by glob."""

import json
from collections.abc import Mapping
from typing import Any

import pyarrow.parquet as pq

from refill.domain.pipeline import Kind
from tests.contract.sinks.bed import Seen, SinkBed


class _Files(SinkBed):
    connector_type = "files"
    format = "parquet"
    pattern = "public.orders/*"

    def options(self) -> Mapping[str, Any]:
        return {"path": "exports/shop", "format": self.format}

    def refused(self) -> Mapping[str, Any]:
        # a file stands where the folder should be
        root = self.folder / "files" / "1"
        root.mkdir(parents=True)
        (root / "taken").write_text("")
        return {"path": "taken/shop", "format": self.format}

    def rows(self) -> list[Seen]:
        base = self.folder / "files" / "1" / "exports" / "shop"
        found: list[Seen] = []
        for file in sorted(base.glob(f"{self.pattern}.{self.format}")):
            if self.format == "parquet":
                records = pq.ParquetFile(file).read().to_pylist()
            else:
                records = [json.loads(line) for line in file.read_text().splitlines()]
            found.extend((record["id"], record["note"]) for record in records)
        return found


class ParquetSink(_Files):
    name = "files-parquet-sink"


class JsonLinesSink(_Files):
    name = "files-jsonl-sink"
    format = "jsonl"


class ParquetTransfer(_Files):
    name = "files-parquet-transfer"
    kind = Kind.TRANSFER
    pattern = "orders/date=*/*"


class JsonLinesTransfer(_Files):
    name = "files-jsonl-transfer"
    kind = Kind.TRANSFER
    format = "jsonl"
    pattern = "orders/date=*/*"
