"""A task that needs more memory than it has ends, and nothing else does."""

import resource
from collections.abc import Iterator

import pyarrow as pa
import pytest

from refill.packs.faults import fault_of
from refill.spark.engine import SparkEngine


@pytest.mark.spark
def test_python_workers_have_a_limit_that_fits_the_machine(spark_engine: SparkEngine) -> None:
    import psutil

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        list(batches)
        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        yield pa.RecordBatch.from_pydict({"limit": [soft]})

    session = spark_engine._linked().session
    (row,) = session.range(0, 1, 1, 1).mapInArrow(look, "limit bigint").collect()
    assert 0 < row.limit < psutil.virtual_memory().total


def test_what_runs_out_of_memory_says_so_and_is_not_tried_again() -> None:
    fault = fault_of(pa.ArrowMemoryError("malloc of size 50000000000 failed"))
    assert not fault.transient
    assert "more memory than a task has" in fault.message
