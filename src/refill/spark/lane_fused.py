"""The fused lane: a pack is one task that reads and writes in the same Python process."""

import pickle
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from refill.connectors.kit.contract import Connector
from refill.domain.slice import Receipt
from refill.packs.assignment import Assignment
from refill.packs.run import run_pack
from refill.packs.watch import Watch, end_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECEIPT_SCHEMA = "receipt string"


class PackTask:
    """The function that Spark carries to the task. The assignment is pickled already, secrets and
    all, so that a plan or the UI shows this class's name and nothing more."""

    def __init__(self, assignment: Assignment, source: Connector, sink: Connector) -> None:
        self._payload = pickled(assignment, source, sink)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:  # one row that only makes Spark run one task
            pass
        assignment, source, sink = pickle.loads(self._payload)
        watch = Watch(assignment.stall_seconds, end=end_process)
        receipts = run_pack(assignment, source, sink, run_before=is_second_run(), watch=watch)
        yield receipts_to_batch(list(receipts))


def run_fused(
    session: "SparkSession", assignment: Assignment, source: Connector, sink: Connector
) -> list[Receipt]:
    frame = session.range(0, 1, 1, 1).mapInArrow(PackTask(assignment, source, sink), RECEIPT_SCHEMA)
    return [Receipt.model_validate_json(row.receipt) for row in frame.collect()]


def receipts_to_batch(receipts: list[Receipt]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"receipt": [receipt.model_dump_json() for receipt in receipts]},
        schema=pa.schema([("receipt", pa.string())]),
    )


def pickled(*parts: object) -> bytes:
    """Spark's own pickler, which takes along functions that cannot be imported by name."""
    from pyspark import cloudpickle

    dumps: Callable[[object], bytes] = cloudpickle.dumps
    return dumps(parts)


def is_second_run() -> bool:
    from pyspark import TaskContext

    context = TaskContext.get()
    return context is not None and context.attemptNumber() > 0
