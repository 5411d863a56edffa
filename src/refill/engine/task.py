"""What runs inside a Spark task: the slices of a pack, one after the other, each to a receipt."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import TypeVar

import pyarrow as pa

from refill.connectors.contract import Sink, Source, Written
from refill.domain.errors import RefillError, Superseded, TooManyRejects, TransientError
from refill.domain.slice import REJECTS_KEPT, Dated, Fault, Outcome, Receipt, Ticket
from refill.engine.allowance import Allowance
from refill.engine.filter import Filter
from refill.engine.flow import Flow, Throttle
from refill.engine.order import WorkOrder
from refill.engine.pool import Borrowed, Pool

log = logging.getLogger(__name__)

T = TypeVar("T")

# one per Python worker process, which Spark keeps from task to task
OPEN = Pool()


class PackRun:
    """Runs the tickets of one order against one source and one sink."""

    def __init__(
        self,
        order: WorkOrder,
        source: Borrowed[Source],
        sink: Borrowed[Sink],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._order = order
        self._spec = order.job.spec
        self._allowance = Allowance(order.job)
        self._source = source
        self._sink = sink
        self._clock = clock
        self._deadline: float | None = None  # set by the first slice that begins
        self._throttle = Throttle(order.max_rows_per_second) if order.max_rows_per_second else None
        self._schema: pa.Schema | None = None
        self._filter: Filter | None = None

    def receipts(self) -> Iterator[Receipt]:
        """One per ticket, in order. A slice that fails does not stop the others."""
        for group in contiguous(self._order.tickets):
            if len(group) == 1:
                yield self._run_alone(group[0])
            else:
                yield from self._run_dates(group)

    def _run_alone(self, ticket: Ticket) -> Receipt:
        if self._time_is_up():
            return without_work(ticket, Outcome.UNSTARTED)
        began = self._begin()
        try:
            batches = self._source.get().read(self._spec, ticket.extent)
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
            dated = self._source.get().read_dates(self._spec, days)
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
            schema = self._source.get().schema(self._spec)
            # before the schema is kept: a filter that cannot be made must fail every slice
            self._filter = Filter(self._spec.filter, schema) if self._spec.filter else None
            self._schema = schema
        flow = Flow(
            batches,
            keep=self._filter,
            throttle=self._throttle,
            on_batch=self._step(ticket, "mid_read"),
        )
        job = self._allowance.job()
        try:
            written = self._sink.get().write(
                job, ticket, self._schema, self._stepped(ticket, iter(flow))
            )
        finally:
            _close(batches)
        receipt = receipt_of(
            ticket,
            written,
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
        receipt = failure(ticket, exc, self._clock() - began)
        self._allowance.spend(receipt)
        return receipt

    def _begin(self) -> float:
        now = self._clock()
        if self._deadline is None:
            self._deadline = now + self._order.seconds_budget
        return now

    def _time_is_up(self) -> bool:
        return self._deadline is not None and self._clock() >= self._deadline

    def _step(self, ticket: Ticket, name: str) -> Callable[[int], None] | None:
        on_step = self._order.on_step
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


def receipt_of(
    ticket: Ticket,
    written: Written,
    *,
    rows_read: int,
    rows_filtered: int,
    seconds: float,
    max_rejects: int,
    source_ended: bool = True,
) -> Receipt:
    """The books must balance: a sink that stopped half-way is a failure, not a delivery."""
    fault = None
    if written.delivered_before:
        # the sink took nothing: what an earlier execution delivered is what was read
        rows_read, rows_filtered = written.rows_delivered + written.rows_rejected, 0
        source_ended = True
    accounted = written.rows_delivered + written.rows_rejected + rows_filtered
    if not source_ended or accounted != rows_read:
        fault = Fault(
            code="unexpected",
            message=f"Of {rows_read} rows read the sink accounts for {accounted}; the slice is "
            "tried again.",
            transient=True,
        )
    elif written.rows_rejected > max_rejects and not written.delivered_before:
        # what stands already was within what was left when it was delivered
        fault = fault_of(
            TooManyRejects(
                f"{written.rows_rejected} rows could not be delivered and {max_rejects} may still "
                "be rejected; see the rejects, then mend the rows and retry, or raise max_rejects "
                "and start a new backfill."
            )
        )
    return Receipt(
        slice_id=ticket.slice_id,
        attempt=ticket.attempt,
        outcome=Outcome.FAILED if fault else Outcome.DONE,
        rows_read=rows_read,
        rows_delivered=written.rows_delivered,
        rows_filtered=rows_filtered,
        rows_rejected=written.rows_rejected,
        bytes_written=written.bytes_written,
        seconds=round(seconds, 6),
        staged=written.staged,
        rejects=written.rejects[:REJECTS_KEPT],
        fault=fault,
        extra=dict(written.extra),
    )


def without_work(ticket: Ticket, outcome: Outcome) -> Receipt:
    return Receipt(slice_id=ticket.slice_id, attempt=ticket.attempt, outcome=outcome)


def failure(ticket: Ticket, exc: Exception, seconds: float = 0.0) -> Receipt:
    if isinstance(exc, Superseded):
        return without_work(ticket, Outcome.SUPERSEDED)
    fault = fault_of(exc)
    if fault.code == "unexpected":
        log.error(
            "slice %s failed unexpectedly",
            ticket.slice_id,
            exc_info=exc,
            extra={"action": "slice_failed", "slice_id": ticket.slice_id},
        )
    rejects, met = (exc.rejects, exc.count) if isinstance(exc, TooManyRejects) else ((), 0)
    return Receipt(
        slice_id=ticket.slice_id,
        attempt=ticket.attempt,
        outcome=Outcome.FAILED,
        rows_read=met,
        rows_rejected=met,
        seconds=round(seconds, 6),
        rejects=rejects[:REJECTS_KEPT],
        fault=fault,
    )


def fault_of(exc: BaseException) -> Fault:
    """An error as data. What we do not know may pass: it is tried again, and its text, which may
    hold anything, stays in the log."""
    if isinstance(exc, TransientError):
        return Fault(
            code=exc.code,
            message=exc.message,
            transient=True,
            retry_after_seconds=exc.retry_after_seconds,
        )
    if isinstance(exc, RefillError):
        return Fault(code=exc.code, message=exc.message, transient=False)
    return Fault(
        code="unexpected",
        message=f"An unexpected {type(exc).__name__} stopped it; the worker's log has the details.",
        transient=True,
    )


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
