"""What the files sink writes as Parquet is read by Spark, the reader that most lakes have."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from refill.connectors.files.formats import ROW_GROUP_ROWS, pour
from refill.spark.engine import SparkEngine

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "small": (pa.int16(), [-(2**15), None, 2**15 - 1]),
    "whole": (pa.int32(), [-(2**31), None, 2**31 - 1]),
    "big": (pa.int64(), [-(2**63), 2**63 - 1, None]),
    "cents": (pa.decimal128(5, 2), [Decimal("-999.99"), None, Decimal("0.01")]),
    "amount": (pa.decimal128(18, 2), [Decimal("9" * 16 + ".99"), Decimal("-0.01"), None]),
    "wide": (pa.decimal128(38, 4), [Decimal("9" * 34 + ".9999"), None, Decimal("-1.0000")]),
    "day": (pa.date32(), [date(1, 1, 1), None, date(9999, 12, 31)]),
    "moment": (
        pa.timestamp("us", tz="UTC"),
        [datetime(1900, 1, 1, tzinfo=UTC), datetime(2262, 4, 12, 0, 0, 0, 1, UTC), None],
    ),
    "a.name, quoted": (pa.int64(), [3, 1, 2]),
    "word": (pa.string(), ["é", None, ""]),
}


@pytest.mark.parametrize("times", [1, ROW_GROUP_ROWS // 2])
def test_spark_reads_every_column_as_it_was_written(
    spark_engine: SparkEngine, tmp_path: Path, times: int
) -> None:
    """Three rows, and so many that they make several row groups."""
    schema = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])
    arrays = [pa.array(values * times, kind) for kind, values in COLUMNS.values()]
    path = tmp_path / "data.parquet"
    with path.open("wb") as file:
        pour("parquet", schema, iter([pa.record_batch(arrays, schema=schema)]), file)
    link = spark_engine._link
    assert link is not None
    read = link.session.read.parquet(str(path)).toArrow()
    assert read.num_rows == 3 * times
    for name, expected in zip(schema.names, arrays, strict=True):
        found = read.column(name).combine_chunks()
        assert found.cast(expected.type).equals(expected), name
