"""Packs in this very process: run, cancelled, and cut short."""

import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from refill.connectors.kit.contract import Context, Job
from refill.domain.errors import (
    EngineUnavailable,
    Misconfigured,
    SinkUnavailable,
    TransformFailed,
)
from refill.domain.slice import Extent, KeyRange, Outcome, Receipt, Ticket
from refill.domain.spec import Read, Spec
from refill.packs.assignment import Assignment
from refill.packs.in_process import InProcessEngine
from tests.memory import TABLE, Memory, MemorySource, MemoryTable, batch_of
from tests.specs import build_spec
from tests.waiting import until

CONTEXT = Context(team_id=1, files_root="/nowhere")


def make_spec(**changes: Any) -> Spec:
    return build_spec(
        **{
            "database_id": "d",
            "database_type": "memory",
            "database_name": "memory",
            "table": TABLE,
            "sort_columns": ("id",),
            "sink_type": "memory",
            "sink_options": {},
            **changes,
        }
    )


def make_ticket(number: int) -> Ticket:
    """Ids of a hundred: 100 * number + 1 … 100 * (number + 1)."""
    lower, upper = str(100 * number), str(100 * (number + 1))
    return Ticket(
        slice_id=number,
        index=number,
        extent=KeyRange(lower=(lower,), upper=(upper,)),
        attempt=1,
        target="t",
        fence=1,
        nonce=uuid4().hex,
    )


def make_assignment(*numbers: int, **changes: Any) -> Assignment:
    return Assignment(
        **{
            "pack_id": uuid4().hex,
            "job": Job(backfill_id=1, backfill_uid="u", spec=make_spec()),
            "source_type": "memory",
            "source_options": {},
            "sink_type": "memory",
            "sink_options": {},
            "context": CONTEXT,
            "tickets": tuple(make_ticket(number) for number in numbers),
            **changes,
        }
    )


class StubbornSource(MemorySource):
    """Closing it does not end what reads."""

    def close(self) -> None: ...


class QuietSource(MemorySource):
    """Closed under a reading, it looks as if it had come to its end."""

    def read(self, read: Read, extent: Extent) -> Iterator[pa.RecordBatch]:
        try:
            yield from super().read(read, extent)
        except Exception:
            return


@pytest.fixture
def memory() -> Memory:
    """Four batches of fifty: two to a slice."""
    return Memory(MemoryTable([batch_of(first, 50) for first in (1, 51, 101, 151)]))


@pytest.fixture
def engine(memory: Memory) -> Iterator[InProcessEngine]:
    made = InProcessEngine({"memory": memory.connector()})
    made.start()
    yield made
    made.stop()


class Running:
    """A pack in a thread of its own."""

    def __init__(self, engine: InProcessEngine, assignment: Assignment) -> None:
        self._engine = engine
        self._assignment = assignment
        self._receipts: list[Receipt] | None = None
        self._error: EngineUnavailable | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._receipts = self._engine.run(self._assignment)
        except EngineUnavailable as exc:
            self._error = exc

    @property
    def receipts(self) -> list[Receipt]:
        self._thread.join(20)
        assert self._receipts is not None
        return self._receipts

    def was_cut_short(self) -> bool:
        self._thread.join(20)
        return self._error is not None


def with_source(memory: Memory, source: Callable[[Memory, Context], MemorySource]) -> Any:
    return memory.connector(open_source=lambda options, context: source(memory, context))


def test_every_ticket_gets_its_receipt(engine: InProcessEngine, memory: Memory) -> None:
    receipts = engine.run(make_assignment(0, 1))
    assert [(each.slice_id, each.outcome) for each in receipts] == [
        (0, Outcome.DONE),
        (1, Outcome.DONE),
    ]
    assert [each.rows_delivered for each in receipts] == [100, 100]
    assert sorted(memory.staged) == [(0, 1), (1, 1)]


def test_a_slice_that_fails_is_a_receipt_and_the_next_one_runs(
    engine: InProcessEngine, memory: Memory
) -> None:
    memory.trouble.fail("write", SinkUnavailable("It went away."))
    receipts = engine.run(make_assignment(0, 1))
    assert [each.outcome for each in receipts] == [Outcome.FAILED, Outcome.DONE]


def test_what_one_pack_opened_serves_the_next_and_is_closed_by_a_stop(memory: Memory) -> None:
    opened: list[MemorySource] = []

    def open_source(options: object, context: Context) -> MemorySource:
        opened.append(MemorySource(memory, context))
        return opened[-1]

    engine = InProcessEngine({"memory": memory.connector(open_source=open_source)})
    engine.start()
    engine.run(make_assignment(0))
    engine.run(make_assignment(1))
    (source,) = opened
    assert not source._connection.closed
    engine.stop()
    assert source._connection.closed


@pytest.mark.parametrize("point", ["read", "write", "written"])
def test_a_cancelled_pack_comes_back_from_where_it_is_blocked(
    engine: InProcessEngine, memory: Memory, point: str
) -> None:
    hang = memory.trouble.hang(point)
    assignment = make_assignment(0, 1)
    pack = Running(engine, assignment)
    assert hang.reached.wait(20)
    engine.cancel(assignment.pack_id)
    assert pack.was_cut_short()
    assert not memory.staged


def test_a_cancelled_pack_stops_at_its_next_batch(memory: Memory) -> None:
    engine = InProcessEngine({"memory": with_source(memory, StubbornSource)})
    engine.start()
    hang = memory.trouble.hang("read", skip=1)
    assignment = make_assignment(0, 1)
    pack = Running(engine, assignment)
    assert hang.reached.wait(20)
    engine.cancel(assignment.pack_id)
    memory.trouble.release(hang)
    assert pack.was_cut_short()
    assert memory.trouble.met["write"] == 1
    engine.stop()


def test_a_source_that_ends_because_it_was_closed_ends_no_slice(memory: Memory) -> None:
    engine = InProcessEngine({"memory": with_source(memory, QuietSource)})
    engine.start()
    hang = memory.trouble.hang("read", skip=1)
    assignment = make_assignment(0)
    pack = Running(engine, assignment)
    assert hang.reached.wait(20)
    engine.cancel(assignment.pack_id)
    assert pack.was_cut_short()
    assert memory.trouble.met["written"] == 0
    engine.stop()


def test_a_pack_cancelled_before_it_begins_touches_nothing(
    engine: InProcessEngine, memory: Memory
) -> None:
    assignment = make_assignment(0)
    engine.cancel(assignment.pack_id)
    with pytest.raises(EngineUnavailable):
        engine.run(assignment)
    assert memory.opened == 0


def test_a_cancel_that_comes_early_is_for_that_pack_alone(engine: InProcessEngine) -> None:
    assignment = make_assignment(0)
    engine.cancel(assignment.pack_id)
    assert len(engine.run(make_assignment(1))) == 1
    with pytest.raises(EngineUnavailable):
        engine.run(assignment)


def test_a_cancel_leaves_the_other_packs_alone(engine: InProcessEngine, memory: Memory) -> None:
    first, second = make_assignment(0), make_assignment(1)
    hang = memory.trouble.hang("written", times=2)
    packs = Running(engine, first), Running(engine, second)
    until(lambda: memory.trouble.met["written"] == 2, "both packs")
    engine.cancel(first.pack_id)
    assert packs[0].was_cut_short()
    memory.trouble.release(hang)
    assert [each.outcome for each in packs[1].receipts] == [Outcome.DONE]


def test_what_was_closed_under_a_cancelled_pack_is_not_lent_again(
    engine: InProcessEngine, memory: Memory
) -> None:
    hang = memory.trouble.hang("written")
    assignment = make_assignment(0)
    pack = Running(engine, assignment)
    assert hang.reached.wait(20)
    engine.cancel(assignment.pack_id)
    assert pack.was_cut_short()
    assert [each.outcome for each in engine.run(make_assignment(1))] == [Outcome.DONE]


def test_a_stop_cuts_short_what_runs_and_nothing_begins_after_it(
    engine: InProcessEngine, memory: Memory
) -> None:
    hang = memory.trouble.hang("read")
    pack = Running(engine, make_assignment(0))
    assert hang.reached.wait(20)
    assert engine.alive()
    engine.stop()
    assert pack.was_cut_short()
    assert not engine.alive()
    with pytest.raises(EngineUnavailable):
        engine.run(make_assignment(1))


def test_sql_is_refused(engine: InProcessEngine) -> None:
    spec = make_spec(transform="select * from source")
    with pytest.raises(TransformFailed):
        engine.check_transform(spec, {}, CONTEXT)
    job = Job(backfill_id=1, backfill_uid="u", spec=spec)
    with pytest.raises(TransformFailed):
        engine.run(make_assignment(0, job=job))


def test_a_connector_that_is_not_here_is_named(engine: InProcessEngine) -> None:
    with pytest.raises(Misconfigured, match="elsewhere"):
        engine.run(make_assignment(0, sink_type="elsewhere"))
