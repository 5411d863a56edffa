"""How often a sink is asked what it knows of lost attempts."""

import itertools
import threading
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from refill.connectors.kit.contract import Connector, Context, Job, Options, Sink, Written
from refill.domain import pipeline
from refill.domain.backfill import Backfill, Status
from refill.domain.errors import SinkUnavailable
from refill.domain.pipeline import Kind
from refill.domain.slice import Receipt, Slice, Ticket, Whole
from refill.packs.pool import Pool
from refill.settings import Settings
from refill.store.records import ClaimedSlice, Finished, Unsure
from refill.worker.ends import EndsFinder
from refill.worker.reconciler import FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS, Reconciler
from tests.specs import build_spec

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GOING_ON = threading.Event()


class Oracle(Sink):
    """Knows of the slices that it is told of, and keeps what it was asked."""

    def __init__(self) -> None:
        self.delivered_slices: set[int] = set()
        self.asked: list[tuple[int, int]] = []
        self.away = False

    def test(self) -> None: ...
    def close(self) -> None: ...
    def write(self, job: Job, ticket: Ticket, schema: Any, batches: Iterator[Any]) -> Written:
        raise AssertionError("nothing is written here")

    def delivered(self, job: Job, tickets: Sequence[Ticket]) -> list[Written | None]:
        self.asked += [(ticket.slice_id, ticket.attempt) for ticket in tickets]
        if self.away:
            raise SinkUnavailable("It does not answer.")
        there = Written(rows_delivered=7, rows_rejected=1, delivered_before=True)
        return [there if t.slice_id in self.delivered_slices else None for t in tickets]


class OneBackfillStore:
    """One paused backfill with slices 1, 2 and 3 unsure, until they are recorded."""

    def __init__(self) -> None:
        self.attempts = {1: 1, 2: 1, 3: 1}
        self.recorded: list[Receipt] = []

    def get_database(self, team_id: int, database_id: str) -> pipeline.Database:
        return pipeline.Database(
            id="d", team_id=1, name="d", type="oracle", options={}, created_at=NOW, updated_at=NOW
        )

    def get_sink(self, team_id: int, sink_id: str) -> pipeline.Sink:
        return pipeline.Sink(
            id="s",
            team_id=1,
            name="s",
            database_id="d",
            destination_type="oracle",
            destination_options={},
            created_at=NOW,
            updated_at=NOW,
        )

    def list_unsure(self, sink_types: Collection[str]) -> tuple[Unsure, ...]:
        assert sink_types == {"oracle"}
        spec = build_spec(
            kind=Kind.SINK,
            database_id="d",
            database_type="oracle",
            database_name="d",
            sink_type="oracle",
            sink_options={},
            sink_id="s",
            max_rejects=1,
        )
        backfill = Backfill(
            id=5,
            uid="u",
            team_id=1,
            kind=Kind.SINK,
            pipeline_id="s",
            pipeline_name="s",
            status=Status.PAUSED,
            spec=spec,
            created_at=NOW,
            updated_at=NOW,
        )
        return (Unsure(backfill=backfill, slices=tuple(map(self._slice, self.attempts))),)

    def _slice(self, number: int) -> ClaimedSlice:
        part = Slice(
            id=number,
            backfill_id=5,
            index=number,
            extent=Whole(),
            target="t",
            attempt=self.attempts[number],
            queued_at=NOW,
        )
        return ClaimedSlice(slice=part, fence=1)

    def record_delivered(self, backfill_id: int, receipts: Sequence[Receipt]) -> Finished:
        self.recorded += receipts
        for receipt in receipts:
            del self.attempts[receipt.slice_id]
        ids = frozenset(receipt.slice_id for receipt in receipts)
        return Finished(accepted=ids, superseded=frozenset(), status=Status.PAUSED)


class Bench:
    def __init__(self) -> None:
        self.now = 0.0
        self.sink = Oracle()
        self.store = OneBackfillStore()
        oracle = Connector(
            type="oracle",
            title="Oracle",
            options_model=Options,
            fading_markers=True,
            open_sink=self._open,
        )
        plain = Connector(type="plain", title="Plain", options_model=Options)
        connectors = {"oracle": oracle, "plain": plain}
        store: Any = self.store
        self.reconciler = Reconciler(
            store,
            EndsFinder(store, connectors, Settings()),
            Pool(),
            connectors,
            on_sealable=lambda: None,
            clock=lambda: self.now,
        )

    def _open(self, options: Options, context: Context) -> Sink:
        return self.sink

    def look(self) -> list[tuple[int, int]]:
        """What the sink was asked by one look."""
        self.sink.asked.clear()
        self.reconciler.look(GOING_ON)
        return list(self.sink.asked)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_what_the_sink_has_is_recorded_with_its_counts(bench: Bench) -> None:
    bench.sink.delivered_slices = {2}
    assert bench.look() == [(1, 1), (2, 1), (3, 1)]
    (receipt,) = bench.store.recorded
    assert (receipt.slice_id, receipt.attempt) == (2, 1)
    assert (receipt.rows_read, receipt.rows_delivered, receipt.rows_rejected) == (8, 7, 1)


def test_what_was_not_found_is_asked_again_ever_more_rarely(bench: Bench) -> None:
    moments = []
    while bench.now < 4 * LONGEST_WAIT_SECONDS:
        if bench.look():
            moments.append(bench.now)
        bench.now += 5.0
    waits = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert waits[0] == FIRST_WAIT_SECONDS
    assert waits == sorted(waits)
    assert waits[-1] == LONGEST_WAIT_SECONDS


def test_a_newer_attempt_is_asked_for_at_once(bench: Bench) -> None:
    bench.look()
    assert bench.look() == []
    bench.store.attempts[2] = 2
    assert bench.look() == [(2, 2)]


def test_a_sink_that_is_away_is_asked_once_and_later_again(bench: Bench) -> None:
    bench.sink.away = True
    assert len(bench.look()) == 1
    assert bench.look() == []
    bench.sink.away = False
    bench.now += FIRST_WAIT_SECONDS
    assert len(bench.look()) == 3
