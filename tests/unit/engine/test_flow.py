"""Batches between source and sink."""

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from refill.engine.flow import Flow, Throttle, read_ahead


def batch(*numbers: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": list(numbers)})


def test_a_flow_counts_what_passes_and_drops_empty_batches() -> None:
    flow = Flow(iter([batch(1, 2), batch(), batch(3)]))

    assert [part.num_rows for part in flow] == [2, 1]
    assert (flow.rows_read, flow.rows_filtered, flow.ended) == (3, 0, True)


def test_a_flow_that_was_left_has_not_ended() -> None:
    flow = Flow(iter([batch(1), batch(2)]))
    next(iter(flow))

    assert not flow.ended


def test_a_throttle_lets_rows_through_at_its_rate() -> None:
    now = [0.0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    throttle = Throttle(10, clock=lambda: now[0], sleep=sleep)
    pieces = list(throttle.split(batch(*range(25))))

    assert [piece.num_rows for piece in pieces] == [5, 5, 5, 5, 5]
    assert sum(slept) == pytest.approx(2.0)


def test_reading_ahead_keeps_order_and_stays_bounded() -> None:
    read: list[int] = []

    def source() -> Iterator[pa.RecordBatch]:
        for number in range(20):
            read.append(number)
            yield batch(number)

    seen = []
    for part in read_ahead(source(), depth=2):
        seen.append(part.column(0)[0].as_py())
        assert len(read) <= len(seen) + 4

    assert seen == list(range(20))


def test_reading_ahead_passes_errors_on() -> None:
    def source() -> Iterator[pa.RecordBatch]:
        yield batch(1)
        raise ValueError("broken")

    batches = read_ahead(source())
    assert next(batches).num_rows == 1
    with pytest.raises(ValueError, match="broken"):
        next(batches)


def test_leaving_a_read_ahead_closes_the_source() -> None:
    closed = threading.Event()

    def source() -> Iterator[pa.RecordBatch]:
        try:
            while True:
                yield batch(1)
        finally:
            closed.set()

    batches = read_ahead(source())
    next(batches)
    batches.close()  # type: ignore[attr-defined]

    assert closed.wait(5)
