"""What a heartbeat asks for, and what it gives up."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import pytest

from refill.domain.backfill import Backfill
from refill.domain.errors import EngineUnavailable
from refill.domain.pipeline import Kind
from refill.domain.retry import RetryPolicy
from refill.domain.slice import Slice, Whole
from refill.store.records import ClaimedSlice, Pack
from refill.worker.in_flight import InFlight, PackInFlight
from refill.worker.lease_keeper import LeaseKeeper
from tests.specs import build_spec

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Lease = tuple[int, int]


class Store:
    """Knows which slices are no longer this worker's."""

    def __init__(self) -> None:
        self.lost: frozenset[int] = frozenset()
        self.asked: list[tuple[str, list[Lease], float]] = []

    def heartbeat(
        self, worker: str, slices: Collection[Lease], claims: Collection[Lease], seconds: float
    ) -> tuple[frozenset[int], frozenset[int]]:
        self.asked.append((worker, list(slices), seconds))
        return self.lost, frozenset()


class Engine:
    def __init__(self) -> None:
        self.cancelled: list[str] = []
        self.deaf = False

    def cancel(self, pack_id: str) -> None:
        self.cancelled.append(pack_id)
        if self.deaf:
            raise EngineUnavailable("Spark does not answer.")


class Bench:
    def __init__(self) -> None:
        self.store, self.engine, self.in_flight = Store(), Engine(), InFlight()
        store: Any = self.store
        engine: Any = self.engine
        self.keeper = LeaseKeeper(
            store, engine, self.in_flight, RetryPolicy(), worker="w", lease_seconds=30.0
        )

    def pack(self, name: str, *slice_ids: int) -> PackInFlight:
        backfill = Backfill(
            id=5,
            uid="u",
            team_id=1,
            kind=Kind.SINK,
            pipeline_id="s",
            pipeline_name="s",
            spec=build_spec(),
            created_at=NOW,
            updated_at=NOW,
        )
        slices = tuple(
            ClaimedSlice(
                slice=Slice(
                    id=slice_id,
                    backfill_id=5,
                    index=slice_id,
                    extent=Whole(),
                    target="t",
                    attempt=slice_id + 10,
                    queued_at=NOW,
                ),
                fence=1,
            )
            for slice_id in slice_ids
        )
        return self.in_flight.add_pack(
            Pack(id=name, backfill=backfill, rows_rejected=0, slices=slices)
        )


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_every_lease_is_asked_for_under_the_workers_name(bench: Bench) -> None:
    bench.pack("a", 1, 2)
    bench.pack("b", 3)
    bench.keeper.beat()
    assert bench.store.asked == [("w", [(1, 11), (2, 12), (3, 13)], 30.0)]


def test_a_heartbeat_that_keeps_everything_gives_up_nothing(bench: Bench) -> None:
    held = bench.pack("a", 1, 2)
    bench.keeper.beat()
    assert not held.given_up
    assert bench.engine.cancelled == []


def test_only_the_pack_that_lost_a_slice_is_given_up(bench: Bench) -> None:
    kept, lost = bench.pack("kept", 1, 2), bench.pack("lost", 3, 4)
    bench.store.lost = frozenset({4})
    bench.keeper.beat()
    assert (kept.given_up, lost.given_up) == (False, True)
    assert bench.engine.cancelled == ["lost"]


def test_a_pack_is_given_up_once(bench: Bench) -> None:
    bench.pack("a", 1)
    bench.store.lost = frozenset({1})
    bench.keeper.beat()
    bench.keeper.beat()
    assert bench.engine.cancelled == ["a"]


def test_what_is_finishing_is_missed_and_not_lost(bench: Bench) -> None:
    held = bench.pack("a", 1)
    held.finishing = True
    bench.store.lost = frozenset({1})
    bench.keeper.beat()
    assert not held.given_up
    assert bench.engine.cancelled == []


def test_a_cancel_that_fails_leaves_the_others_to_be_looked_at(bench: Bench) -> None:
    first, second = bench.pack("a", 1), bench.pack("b", 2)
    bench.engine.deaf = True
    bench.store.lost = frozenset({1, 2})
    bench.keeper.beat()
    assert first.given_up
    assert second.given_up
    assert bench.engine.cancelled == ["a", "b"]


def test_nothing_held_is_nothing_to_ask(bench: Bench) -> None:
    bench.keeper.beat()
    assert bench.store.asked == []
