"""A backfill that was claimed again: what the older claim's thread still does."""

from types import SimpleNamespace
from typing import Any

import pytest

from refill.domain.errors import Superseded
from refill.worker.in_flight import InFlight
from refill.worker.snapshots import Snapshots

SPEC: Any = None


class Source:
    def __init__(self, snapshot: str) -> None:
        self.snapshot = snapshot
        self.closed = False

    def hold_snapshot(self, spec: Any) -> str:
        return self.snapshot

    def close(self) -> None:
        self.closed = True


def claim(attempt: int) -> Any:
    return SimpleNamespace(backfill=SimpleNamespace(id=7), attempt=attempt)


def hold(snapshots: Snapshots, attempt: int) -> Source:
    source: Any = Source(f"snapshot-{attempt}")
    assert snapshots.hold(claim(attempt), SPEC, lambda: source) == source.snapshot
    held: Source = source
    return held


def test_a_lost_claim_does_not_end_the_heartbeat_of_the_newer_one() -> None:
    held, lost, newer = InFlight(), claim(1), claim(2)
    held.add_claim(lost)
    held.add_claim(newer)
    held.remove_claim(lost)
    assert held.claims() == [newer]
    held.remove_claim(newer)
    assert held.claims() == []


def test_a_lost_claim_leaves_the_snapshot_of_the_newer_one() -> None:
    snapshots = Snapshots()
    older = hold(snapshots, 1)
    newer = hold(snapshots, 2)
    assert older.closed
    snapshots.give_up(claim(1))
    assert not newer.closed
    snapshots.give_up(claim(2))
    assert newer.closed
    assert snapshots.held() == []


def test_a_lost_claim_does_not_put_its_snapshot_in_the_place_of_the_newer_one() -> None:
    snapshots, late = Snapshots(), Source("late")
    newer = hold(snapshots, 2)
    opened: Any = late
    with pytest.raises(Superseded):
        snapshots.hold(claim(1), SPEC, lambda: opened)
    assert late.closed
    assert not newer.closed
    snapshots.drop(7)
    assert newer.closed
