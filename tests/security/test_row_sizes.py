"""A row that is too large is a reject with its key, and the others are delivered."""

import pyarrow as pa

from refill.connectors.kit.contract import Written
from refill.domain.backfill import Status
from refill.packs.flow import Flow
from refill.packs.row_limit import RowLimit
from tests.contract.store.factories import make_spec
from tests.contract.worker.bed import EVERY_ID, Bed
from tests.contract.worker.conftest import bed, migrated

__all__ = ["bed", "migrated"]  # fixtures

LIMIT = 10_000


def batch(*sizes: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"c0": list(range(len(sizes))), "c1": ["x" * size for size in sizes]}
    )


def test_a_row_over_the_limit_is_set_aside_with_its_key() -> None:
    limit = RowLimit(LIMIT, make_spec())
    flow = Flow(iter([batch(1, 20_000, 5), batch(2, 3)]), limit=limit)
    delivered = sum(part.num_rows for part in flow)
    written = limit.account(Written(rows_delivered=delivered))
    assert (flow.rows_read, delivered, written.rows_rejected) == (5, 4, 1)
    (reject,) = written.rejects
    assert reject.key == ("1",)
    assert reject.reason == "row too large"


def test_a_batch_of_many_small_rows_goes_through_whole() -> None:
    limit = RowLimit(LIMIT, make_spec())
    assert limit.apply(batch(*[50] * 2_000)).num_rows == 2_000
    assert limit.rows_rejected == 0


def test_what_an_earlier_execution_delivered_is_not_counted_again() -> None:
    limit = RowLimit(LIMIT, make_spec())
    limit.apply(batch(20_000))
    before = Written(rows_delivered=3, delivered_before=True)
    assert limit.account(before) is before


def test_the_operators_limit_reaches_the_slices(bed: Bed) -> None:
    backfill = bed.backfill()
    with bed.working(max_row_bytes=1024):
        ended = bed.wait(backfill, Status.COMPLETED)
    assert bed.memory.ids() == EVERY_ID  # sixteen bytes each
    assert ended.counters.rows_rejected == 0
