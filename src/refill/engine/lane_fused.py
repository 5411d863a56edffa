"""The fused lane: a pack is one task that reads and writes in the same Python process."""

import pickle
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from refill.connectors.contract import Connector
from refill.domain.slice import Outcome, Receipt
from refill.engine.order import WorkOrder
from refill.engine.pool import sink_of, source_of
from refill.engine.task import OPEN, PackRun, failure, without_work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECEIPT_SCHEMA = "receipt string"


class PackTask:
    """The function that Spark carries to the task. The order is pickled already, secrets and all,
    so that a plan or the UI shows this class's name and nothing more."""

    def __init__(self, order: WorkOrder, source: Connector, sink: Connector) -> None:
        self._payload = pickled(order, source, sink)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:  # one row that only makes Spark run one task
            pass
        order, source, sink = pickle.loads(self._payload)
        yield receipts_to_batch(list(run_pack(order, source, sink, run_before=is_second_run())))


def run_pack(
    order: WorkOrder, source: Connector, sink: Connector, *, run_before: bool = False
) -> Iterator[Receipt]:
    """The receipts of an order. Spark may run a task again by itself, perhaps while the first run
    still goes on: the second touches nothing and says so."""
    if run_before:
        yield from (without_work(ticket, Outcome.SUPERSEDED) for ticket in order.tickets)
        return
    try:
        reading = source_of(OPEN, source, order.source_options, order.context)
        writing = sink_of(OPEN, sink, order.sink_options, order.context)
    except Exception as exc:
        yield from (failure(ticket, exc) for ticket in order.tickets)
        return
    with reading, writing:
        yield from PackRun(order, reading, writing).receipts()


def run_fused(
    session: "SparkSession", order: WorkOrder, source: Connector, sink: Connector
) -> list[Receipt]:
    frame = session.range(0, 1, 1, 1).mapInArrow(PackTask(order, source, sink), RECEIPT_SCHEMA)
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
