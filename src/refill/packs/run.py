"""What runs inside a task: the slices of a pack, one after the other, each to a receipt."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import TypeVar

import pyarrow as pa

from refill.connectors.kit.contract import Connector, Sink, Source
from refill.domain.slice import Dated, Outcome, Receipt, Ticket
from refill.domain.spec import KeyedRead, SinkSpec
from refill.packs.allowance import RejectAllowance
from refill.packs.assignment import Assignment
from refill.packs.enrich import Enricher
from refill.packs.faults import failure, without_work
from refill.packs.filter import Filter
from refill.packs.flow import Flow, Throttle
from refill.packs.pack_pool import PackPool
from refill.packs.pool import Borrowed, Pool, sink_of, source_of
from refill.packs.receipts import receipt_of
from refill.packs.row_limit import RowLimit
from refill.packs.watch import Watch

log = logging.getLogger(__name__)

T = TypeVar("T")

# one per Python worker process, which Spark keeps from task to task
OPEN = Pool()


class PackRun:
    """Runs the tickets of one assignment against one source and one sink."""

    def __init__(
        self,
        assignment: Assignment,
        source: Borrowed[Source],
        sink: Borrowed[Sink],
        *,
        check: Callable[[], None] = lambda: None,
        watch: Watch | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._watch = watch or Watch(assignment.stall_seconds)
        self._assignment = assignment
        self._spec = assignment.job.spec
        self._allowance = RejectAllowance(assignment.job)
        self._source = source
        self._sink = sink
        self._check = self._watch.beating(check)
        self._clock = clock
        self._deadline: float | None = None  # set by the first slice that begins
        limit = assignment.max_rows_per_second
        self._throttle = Throttle(limit) if limit else None
        self._schema: pa.Schema | None = None
        self._filter: Filter | None = None

    def receipts(self) -> Iterator[Receipt]:
        """One per ticket, in order. A slice that fails does not stop the others."""
        for group in contiguous(self._assignment.tickets):
            if len(group) == 1:
                yield self._run_alone(group[0])
            else:
                yield from self._run_dates(group)

    def _run_alone(self, ticket: Ticket) -> Receipt:
        if self._time_is_up():
            return without_work(ticket, Outcome.UNSTARTED)
        began = self._begin()
        try:
            batches = self._source.get().read(self._spec.read, ticket.extent)
            return self._deliver(ticket, batches, began)
        except Exception as exc:
            return self._failed(ticket, exc, began)

    def _run_dates(self, tickets: Sequence[Ticket]) -> Iterator[Receipt]:
        """Asks the source once for all dates; after a failure, anew for those that are left."""
        left = list(tickets)
        while left:
            if self._time_is_up():
                yield from (without_work(ticket, Outcome.UNSTARTED) for ticket in left)
                return
            yield from self._read_together(left)

    def _read_together(self, left: list[Ticket]) -> list[Receipt]:
        """Receipts of the dates that one reading got through, which leave `left`. They count only
        once the reading has ended well: a source may find out at its end what was wrong."""
        began = self._begin()
        allowed = self._allowance.left
        receipts: list[Receipt] = []
        read: list[Ticket] = []
        try:
            days = [t.extent.date for t in left if isinstance(t.extent, Dated)]
            what = self._spec.read
            assert not isinstance(what, KeyedRead)  # what has dates is read by them
            dated = self._source.get().read_dates(what, days)
            try:
                for _, batches in dated:
                    if self._time_is_up():
                        break
                    receipts.append(self._deliver(left[0], batches, began))
                    read.append(left.pop(0))
                    began = self._begin()
                    if receipts[-1].fault is not None:
                        break
            finally:
                # before a failure drops the source: a query left open could keep its connection
                _close(dated)
        except Exception as exc:
            if left:
                return [*receipts, self._failed(left.pop(0), exc, began)]
            self._allowance.left = allowed  # what these dates rejected does not count either
            return [self._failed(ticket, exc, began) for ticket in read]
        return receipts

    def _deliver(self, ticket: Ticket, batches: Iterator[pa.RecordBatch], began: float) -> Receipt:
        if self._schema is None:
            schema = self._source.get().schema(self._spec.read)
            # before the schema is kept: a filter that cannot be made must fail every slice
            self._filter = Filter(self._spec.filter, schema) if self._spec.filter else None
            self._schema = schema
        limit = RowLimit(self._assignment.max_row_bytes, self._spec)
        flow = Flow(
            batches,
            limit=limit,
            keep=self._filter,
            throttle=self._throttle,
            on_batch=self._step(ticket, "mid_read"),
            check=self._check,
        )
        job = self._allowance.job()
        kept, schema = iter(flow), self._schema
        if isinstance(self._spec, SinkSpec) and self._spec.enrichment is not None:
            enricher = Enricher(self._spec, self._source.get())
            kept, schema = map(enricher.apply, kept), enricher.schema(schema)
        try:
            written = self._sink.get().write(job, ticket, schema, self._stepped(ticket, kept))
        finally:
            _close(batches)
        receipt = receipt_of(
            ticket,
            limit.account(written),
            rows_read=flow.rows_read,
            rows_filtered=flow.rows_filtered,
            seconds=self._clock() - began,
            max_rejects=job.spec.max_rejects,
            source_ended=flow.ended,
        )
        self._allowance.spend(receipt)
        return receipt

    def _failed(self, ticket: Ticket, exc: Exception, began: float) -> Receipt:
        # neither is trusted any more: a transaction or a protocol may be left in the middle
        self._source.discard()
        self._sink.discard()
        receipt = failure(ticket, self._watch.verdict(exc), self._clock() - began)
        self._allowance.spend(receipt)
        return receipt

    def _begin(self) -> float:
        self._check()
        now = self._clock()
        if self._deadline is None:
            self._deadline = now + self._assignment.seconds_budget
        return now

    def _time_is_up(self) -> bool:
        return self._deadline is not None and self._clock() >= self._deadline

    def _step(self, ticket: Ticket, name: str) -> Callable[[int], None] | None:
        on_step = self._assignment.on_step
        if on_step is None:
            return None
        return lambda number: on_step(name, ticket.slice_id) if number == 0 else None

    def _stepped(
        self, ticket: Ticket, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        step = self._step(ticket, "mid_write")
        if step is None:
            return batches
        return _after_first(batches, step)


def run_pack(
    assignment: Assignment,
    source: Connector,
    sink: Connector,
    *,
    pool: Pool = OPEN,
    check: Callable[[], None] = lambda: None,
    run_before: bool = False,
    watch: Watch | None = None,
) -> Iterator[Receipt]:
    """The receipts of an assignment. An engine may run a task again by itself, perhaps while the
    first run still goes on: the second touches nothing and says so. `check` is called before every
    slice and every batch: what it raises, unless it is an Exception, ends the pack. `watch` ends
    what stands still."""
    if run_before:
        yield from (without_work(ticket, Outcome.SUPERSEDED) for ticket in assignment.tickets)
        return
    lent = pool if isinstance(pool, PackPool) else PackPool(pool)
    watch = watch or Watch(assignment.stall_seconds)
    try:
        reading = source_of(lent, source, assignment.source_options, assignment.context)
        writing = sink_of(lent, sink, assignment.sink_options, assignment.context)
    except Exception as exc:
        yield from (failure(ticket, exc) for ticket in assignment.tickets)
        return
    with watch.over(lent.cut), reading, writing:
        yield from PackRun(assignment, reading, writing, check=check, watch=watch).receipts()


def contiguous(tickets: Sequence[Ticket]) -> Iterator[list[Ticket]]:
    """Neighbouring dates, in one direction, belong together; everything else stands alone."""
    group: list[Ticket] = []
    stride: timedelta | None = None
    for ticket in tickets:
        if group and isinstance(ticket.extent, Dated):
            last = group[-1].extent
            step = ticket.extent.date - last.date if isinstance(last, Dated) else None
            if step is not None and abs(step) == timedelta(days=1) and stride in (None, step):
                group.append(ticket)
                stride = step
                continue
        if group:
            yield group
        group, stride = [ticket], None
    if group:
        yield group


def _after_first(
    batches: Iterator[pa.RecordBatch], step: Callable[[int], None]
) -> Iterator[pa.RecordBatch]:
    for number, batch in enumerate(batches):
        yield batch
        step(number)


def _close(iterator: object) -> None:
    close = getattr(iterator, "close", None)
    if close is not None:
        close()
