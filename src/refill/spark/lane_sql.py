"""The SQL lane: the same read as the view `source`, the user's Spark SQL, the same write."""

import dataclasses
import pickle
import re
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from refill.connectors.kit.contract import Connector, Context, Job
from refill.connectors.kit.instants import far_rows
from refill.domain.errors import EngineUnavailable, Invalid, TransformFailed
from refill.domain.slice import Fault, Outcome, Receipt, Ticket
from refill.domain.spec import SinkSpec, Spec
from refill.guards.transform import check_transform
from refill.packs.allowance import RejectAllowance
from refill.packs.assignment import Assignment
from refill.packs.enrich import Enricher
from refill.packs.faults import failure, fault_of, without_work
from refill.packs.filter import Filter
from refill.packs.flow import Flow, Throttle
from refill.packs.pack_pool import PackPool
from refill.packs.pool import sink_of, source_of
from refill.packs.receipts import receipt_of
from refill.packs.row_limit import RowLimit
from refill.packs.run import OPEN
from refill.packs.watch import Watch, end_process
from refill.spark.frames import conform, from_spark, spark_safe, to_spark
from refill.spark.lane_fused import RECEIPT_SCHEMA, is_second_run, pickled, receipts_to_batch
from refill.spark.session import SparkLink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VIEW = "source"
_KEPT = "__refill_kept"
_FAULT = re.compile(r"refill-fault:([A-Za-z0-9+/]+=*):")
# SQLSTATE classes of what a person wrote or what the data holds, not of Spark's own troubles
_USER_CLASSES = ("0A", "21", "22", "42")


class SqlLane:
    """Runs the tickets of one assignment, each as one Spark job in a session of their own."""

    def __init__(
        self,
        link: SparkLink,
        assignment: Assignment,
        source: Connector,
        sink: Connector,
        cancelled: Callable[[], bool],
    ) -> None:
        self._link = link
        self._assignment = assignment
        self._source = source
        self._sink = sink
        self._cancelled = cancelled

    def run(self) -> list[Receipt]:
        assignment = self._assignment
        try:
            guard(assignment.job.spec)
            schema = _source_schema(
                self._source, assignment.source_options, assignment.context, assignment.job.spec
            )
        except Exception as exc:
            return [failure(ticket, exc) for ticket in assignment.tickets]
        receipts: list[Receipt] = []
        allowance = RejectAllowance(assignment.job)
        session = self._link.new_session()
        deadline = time.monotonic() + assignment.seconds_budget
        with self._link.tagged(session, assignment.pack_id):
            for ticket in assignment.tickets:
                if self._cancelled():
                    raise EngineUnavailable("The pack was cancelled.")
                if receipts and time.monotonic() >= deadline:
                    receipts.append(without_work(ticket, Outcome.UNSTARTED))
                else:
                    receipts.append(self._run(session, ticket, schema, allowance.job()))
                    allowance.spend(receipts[-1])
        return receipts

    def _run(self, session: "SparkSession", ticket: Ticket, schema: pa.Schema, job: Job) -> Receipt:
        from pyspark.errors import PySparkException
        from pyspark.sql import Observation, functions

        began = time.monotonic()
        observation = Observation(f"read_{ticket.nonce}")
        counted = True
        assignment = dataclasses.replace(self._assignment, job=job)
        spec = job.spec
        try:
            frame = _read_frame(session, assignment, self._source, ticket, schema)
            frame = frame.observe(observation, functions.count(functions.lit(1)).alias("rows"))
            if spec.filter:
                frame = frame.where(functions.col(_KEPT)).drop(_KEPT)
            frame.createOrReplaceTempView(VIEW)
            result = session.sql(sql_of(spec))
            made = from_spark(result.schema)
            task = WriteTask(assignment, ticket, self._source, self._sink, made)
            # a stage of its own: a read that breaks off must not look like the end of the data
            written = result.repartition(1).mapInArrow(task, RECEIPT_SCHEMA)
            rows = written.collect()
            if not rows:
                # Spark proved that nothing comes out and ran no task at all; yet a date that
                # became empty has to be written as empty
                nothing = session.range(0, 1, 1, 1).where("id < 0")
                rows = nothing.mapInArrow(task, RECEIPT_SCHEMA).collect()
                counted = False
        except PySparkException as exc:
            if self._cancelled():
                raise EngineUnavailable("The pack was cancelled.") from exc
            fault = fault_of_spark(exc)
            if fault is None:
                raise
            return without_work(ticket, Outcome.FAILED).model_copy(update={"fault": fault})
        except TransformFailed as exc:
            return failure(ticket, exc)
        seconds = round(time.monotonic() - began, 6)
        seen = self._link.observed(written, observation).get("rows") if counted else None
        return _balanced(Receipt.model_validate_json(rows[0].receipt), seen, seconds)


class ReadTask:
    """Reads one slice inside a task; an error of ours leaves it as text that the driver reads."""

    def __init__(
        self, assignment: Assignment, source: Connector, ticket: Ticket, schema: pa.Schema
    ) -> None:
        self._payload = pickled(assignment, source, ticket, schema)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        assignment, source, ticket, schema = pickle.loads(self._payload)
        lent = PackPool(OPEN)
        watch = Watch(assignment.stall_seconds, end=end_process)
        try:
            with (
                watch.over(lent.cut),
                source_of(lent, source, assignment.source_options, assignment.context) as reading,
            ):
                yield from _read(assignment, reading.get(), ticket, schema, watch)
        except Exception as exc:
            text = b64encode(fault_of(watch.verdict(exc)).model_dump_json().encode()).decode()
            raise RuntimeError(f"refill-fault:{text}:") from exc


class WriteTask:
    """Writes the one partition of the result, and returns its receipt as data."""

    def __init__(
        self,
        assignment: Assignment,
        ticket: Ticket,
        source: Connector,
        sink: Connector,
        schema: pa.Schema,
    ) -> None:
        self._payload = pickled(assignment, ticket, source, sink, schema)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        assignment, ticket, source, sink, schema = pickle.loads(self._payload)
        if is_second_run():
            yield receipts_to_batch([without_work(ticket, Outcome.SUPERSEDED)])
            return
        lent = PackPool(OPEN)
        watch = Watch(assignment.stall_seconds, end=end_process)
        limit = RowLimit(assignment.max_row_bytes, assignment.job.spec)
        rows = (conform(batch, schema) for batch in batches)
        flow = Flow(rows, limit=limit, check=watch.beat)
        try:
            with ExitStack() as opened:
                opened.enter_context(watch.over(lent.cut))
                place = (assignment.sink_options, assignment.context)
                writing = opened.enter_context(sink_of(lent, sink, *place))
                taken, given = iter(flow), schema
                spec = assignment.job.spec
                if isinstance(spec, SinkSpec) and spec.enrichment is not None:
                    place = (assignment.source_options, assignment.context)
                    asked = opened.enter_context(source_of(lent, source, *place))
                    enricher = Enricher(spec, asked.get())
                    taken, given = map(enricher.apply, taken), enricher.schema(schema)
                written = writing.get().write(assignment.job, ticket, given, taken)
            receipt = receipt_of(
                ticket,
                limit.account(written),
                rows_read=flow.rows_read,
                rows_filtered=0,
                seconds=0.0,
                max_rejects=assignment.job.spec.max_rejects,
                source_ended=flow.ended,
            )
        except Exception as exc:
            receipt = failure(ticket, watch.verdict(exc))
        for _ in batches:  # Spark waits until its data is taken
            pass
        yield receipts_to_batch([receipt])


def delivered_schema(
    link: SparkLink,
    spec: Spec,
    source: Connector,
    options: Mapping[str, Any],
    context: Context,
) -> pa.Schema:
    """Analyses the SQL over an empty frame; TransformFailed in Spark's own words."""
    from pyspark.errors import PySparkException

    try:
        guard(spec)
    except Invalid as exc:
        raise TransformFailed(exc.message) from exc
    session = link.new_session()
    safe = spark_safe(_source_schema(source, options, context, spec))
    session.createDataFrame([], to_spark(safe)).createOrReplaceTempView(VIEW)
    try:
        _refuse_commands(session, sql_of(spec))
        return from_spark(session.sql(sql_of(spec)).schema)
    except PySparkException as exc:
        raise TransformFailed(f"The SQL failed: {spark_sentence(exc)}") from exc


def _refuse_commands(session: "SparkSession", sql: str) -> None:
    """Spark's own reading of it: should the guard's parser ever have understood something else,
    no shell command runs."""
    plan = session.sql(f"EXPLAIN EXTENDED {sql}").collect()[0][0]
    if "ScriptTransformation" in plan:
        raise TransformFailed("The SQL was refused: it would run a command.")


def guard(spec: Spec) -> None:
    """The tenant's SQL is looked at again before every run, wherever it came from."""
    known = [column.name for column in spec.read.fields]
    if isinstance(spec, SinkSpec):
        keep = {*spec.read.table.key, *spec.group_columns}
        check_transform(sql_of(spec), known, row_by_row=True, keep=keep)
    else:
        check_transform(sql_of(spec), known, row_by_row=False)


def sql_of(spec: Spec) -> str:
    if spec.transform is None:
        raise TransformFailed("The backfill has no SQL to run; start it again.")
    return spec.transform


def fault_of_spark(exc: Exception) -> Fault | None:
    """Ours, if the read said so; the SQL's, if the data broke it; None: Spark's own trouble."""
    text = str(exc)
    ours = _FAULT.search(text)
    if ours:
        return Fault.model_validate_json(b64decode(ours[1]))
    state = getattr(exc, "getSqlState", lambda: None)()
    if state and str(state)[:2] in _USER_CLASSES:
        return fault_of(TransformFailed(f"The SQL failed: {spark_sentence(exc)}"))
    named = re.search(r"\[[A-Z0-9_.]+\][^\n]*SQLSTATE: (\w{5})", text)
    if named and named[1][:2] in _USER_CLASSES:
        return fault_of(TransformFailed(f"The SQL failed: {_shortened(named[0])}"))
    return None


def spark_sentence(exc: Exception) -> str:
    lines = str(exc).strip().splitlines()
    return _shortened(lines[0] if lines else type(exc).__name__)


def _shortened(line: str) -> str:
    line = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", line.strip())
    line = re.sub(r"\s*SQLSTATE: \w{5}.*$", "", line)
    return line[:400]


def _source_schema(
    source: Connector, options: Mapping[str, Any], context: Context, spec: Spec
) -> pa.Schema:
    with source_of(OPEN, source, options, context) as borrowed:
        return borrowed.get().schema(spec.read)


def _read_frame(
    session: "SparkSession",
    assignment: Assignment,
    source: Connector,
    ticket: Ticket,
    schema: pa.Schema,
) -> "DataFrame":
    from pyspark.sql.types import BooleanType

    struct = to_spark(spark_safe(schema))
    if assignment.job.spec.filter:
        struct = struct.add(_KEPT, BooleanType())
    task = ReadTask(assignment, source, ticket, schema)
    return session.range(0, 1, 1, 1).mapInArrow(task, struct)


def _read(
    assignment: Assignment, source: Any, ticket: Ticket, schema: pa.Schema, watch: Watch
) -> Iterator[pa.RecordBatch]:
    spec = assignment.job.spec
    safe = spark_safe(schema)
    keep = Filter(spec.filter, schema) if spec.filter else None
    throttle = Throttle(assignment.max_rows_per_second) if assignment.max_rows_per_second else None
    batches = source.read(spec.read, ticket.extent)
    for batch in Flow(batches, throttle=throttle, check=watch.beat):
        if far_rows(batch) is not None:
            raise TransformFailed(
                "A timestamp lies after the year 294246, which Spark SQL cannot hold: leave such "
                "rows out with a partial backfill, or leave out the SQL."
            )
        converted = conform(batch, safe)
        # dropped rows go along, marked, so that Spark counts them as read
        yield converted if keep is None else converted.append_column(_KEPT, keep.mask(batch))


def _balanced(receipt: Receipt, rows_read: int | None, seconds: float) -> Receipt:
    """What the SQL dropped counts as filtered; what it made up is delivered all the same."""
    if receipt.outcome is not Outcome.DONE:
        # what it did not get to was not dropped by anybody
        return receipt.model_copy(update={"seconds": seconds})
    read = receipt.rows_read if rows_read is None else rows_read
    dropped = max(0, read - receipt.rows_delivered - receipt.rows_rejected)
    return receipt.model_copy(
        update={"rows_read": read, "rows_filtered": dropped, "seconds": seconds}
    )
