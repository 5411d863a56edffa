"""Batches between source and sink."""

import pyarrow as pa
import pytest

from refill.packs.flow import Flow, Throttle


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
