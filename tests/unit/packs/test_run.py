"""A pack's slices, without Spark."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from refill.connectors.kit.contract import Context, Job, Sink, Source, Written
from refill.domain.errors import SinkRefused, SourceUnavailable, TooManyRejects
from refill.domain.pipeline import Condition, Operator
from refill.domain.slice import REJECTS_KEPT, Dated, Outcome, Receipt, Reject, Ticket, Whole
from refill.domain.spec import DatedRead, QueryRead
from refill.packs.assignment import Assignment
from refill.packs.faults import failure
from refill.packs.pool import Pool
from refill.packs.receipts import receipt_of
from refill.packs.run import PackRun, contiguous
from tests.integration.spark.assignments import key_ticket, make_assignment, make_spec, make_ticket
from tests.sheets import SheetOptions, SheetSink, SheetSource

CONTEXT = Context(team_id=1, files_root="/nowhere")


def ticket(day: int | None) -> Ticket:
    extent = Whole() if day is None else Dated(date=date(2024, 1, 1) + timedelta(days=day))
    return Ticket(
        slice_id=day or 0, index=0, extent=extent, attempt=1, target="t", fence=1, nonce="n"
    )


def groups(*days: int | None) -> list[list[int]]:
    return [[part.slice_id for part in group] for group in contiguous([ticket(d) for d in days])]


def test_neighbouring_dates_belong_together_in_either_direction() -> None:
    assert groups(1, 2, 3) == [[1, 2, 3]]
    assert groups(3, 2, 1) == [[3, 2, 1]]


def test_a_gap_or_a_turn_begins_a_new_group() -> None:
    assert groups(1, 2, 4, 5) == [[1, 2], [4, 5]]
    assert groups(1, 2, 1) == [[1, 2], [1]]
    assert groups(None, 1, 2) == [[0], [1, 2]]
    assert groups() == []


def test_a_slice_that_failed_for_too_many_rejects_lists_them() -> None:
    met = [Reject(key=(str(number),), reason="bad") for number in range(REJECTS_KEPT + 1)]
    receipt = failure(ticket(1), TooManyRejects("too many", met))
    assert receipt.outcome is Outcome.FAILED
    assert receipt.rejects == tuple(met[:REJECTS_KEPT])
    assert (receipt.rows_read, receipt.rows_rejected) == (REJECTS_KEPT + 1, REJECTS_KEPT + 1)
    refused = failure(ticket(1), SinkRefused("no"))
    assert (refused.rejects, refused.rows_read, refused.rows_rejected) == ((), 0, 0)


class TellingSource(SheetSource):
    """Says what of it is closed, and may find out at the end of several dates what was wrong."""

    def __init__(self, *, ends_badly: bool = False) -> None:
        super().__init__(SheetOptions(), CONTEXT)
        self.closed: list[str] = []
        self._ends_badly = ends_badly

    def read_dates(
        self, read: DatedRead | QueryRead, dates: Sequence[date]
    ) -> Iterator[tuple[date, Iterator[pa.RecordBatch]]]:
        try:
            yield from super().read_dates(read, dates)
            if self._ends_badly:
                raise SourceUnavailable("The source went away.")
        finally:
            self.closed.append("reading")

    def close(self) -> None:
        self.closed.append("source")


class PickySink(SheetSink):
    """Rejects two rows of every slice, and keeps how many it was allowed."""

    def __init__(self) -> None:
        super().__init__(SheetOptions(), CONTEXT)
        self.allowed: list[int] = []

    def write(
        self, job: Job, ticket: Ticket, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
    ) -> Written:
        self.allowed.append(job.spec.max_rejects)
        rows = sum(batch.num_rows for batch in batches)
        return Written(rows_delivered=rows - 2, rows_rejected=2)


def run(order: Assignment, source: Source, sink: Sink) -> list[Receipt]:
    pool = Pool()
    with pool.borrow("source", lambda: source) as reading, pool.borrow("sink", lambda: sink) as to:
        receipts = list(PackRun(order, reading, to).receipts())
    pool.close()
    return receipts


def test_a_reading_is_closed_before_a_failure_drops_its_source(tmp_path: Path) -> None:
    source = TellingSource()
    sink = SheetSink(SheetOptions(path=str(tmp_path), write_fails_at=(1,)), CONTEXT)
    receipts = run(make_assignment(tmp_path, [make_ticket(1), make_ticket(2)]), source, sink)
    assert [receipt.outcome for receipt in receipts] == [Outcome.FAILED, Outcome.DONE]
    assert source.closed[:2] == ["reading", "source"]


@pytest.mark.parametrize("make", [key_ticket, make_ticket], ids=["alone", "dates together"])
def test_each_slice_of_a_pack_may_reject_what_the_earlier_ones_left(
    tmp_path: Path, make: Callable[[int], Ticket]
) -> None:
    sink = PickySink()
    order = make_assignment(
        tmp_path, [make(n) for n in (1, 2, 3, 4)], spec=make_spec(max_rejects=5)
    )
    receipts = run(order, TellingSource(), sink)
    assert sink.allowed == [5, 3, 1, 0]
    outcomes = [Outcome.DONE, Outcome.DONE, Outcome.FAILED, Outcome.FAILED]
    assert [receipt.outcome for receipt in receipts] == outcomes
    assert [receipt.fault.code for receipt in receipts if receipt.fault] == ["too_many_rejects"] * 2


def test_what_dates_rejected_that_were_not_read_well_is_not_counted(tmp_path: Path) -> None:
    sink = PickySink()
    tickets = [make_ticket(n) for n in (1, 2, 4)]
    order = make_assignment(tmp_path, tickets, spec=make_spec(max_rejects=5))
    receipts = run(order, TellingSource(ends_badly=True), sink)
    assert [receipt.outcome is Outcome.DONE for receipt in receipts] == [False, False, True]
    assert sink.allowed == [5, 3, 5]


def test_what_was_delivered_before_stands_whatever_is_left() -> None:
    counts: dict[str, Any] = {"rows_read": 0, "rows_filtered": 0, "seconds": 0.0, "max_rejects": 2}
    before = Written(rows_delivered=7, rows_rejected=3, delivered_before=True)
    assert receipt_of(ticket(1), before, **counts).outcome is Outcome.DONE


def test_a_filter_that_cannot_be_made_fails_every_slice(tmp_path: Path) -> None:
    """Not the first alone: the next one would be delivered unfiltered."""
    gone = Condition(column_name="gone", operator=Operator.EQ, comparison_value=1)
    order = make_assignment(
        tmp_path, [key_ticket(1), key_ticket(2)], spec=make_spec(filter=(gone,))
    )
    receipts = run(order, TellingSource(), PickySink())
    assert [receipt.outcome for receipt in receipts] == [Outcome.FAILED, Outcome.FAILED]
