"""What a worker does with what it holds when it has lost it, or is stopped."""

import threading
from collections.abc import Collection

import pytest

from refill.domain.backfill import Backfill, Status
from refill.domain.slice import SliceState
from refill.packs.in_process import InProcessEngine
from refill.store.records import BackfillClaim
from refill.worker import worker as worker_module
from tests.contract.worker.bed import EVERY_ID, SECONDS, SLICES, Bed
from tests.trouble import Hang
from tests.waiting import until

UNTOUCHED = {(SliceState.PENDING, 0)}


class LateEngine(InProcessEngine):
    """Its cancel comes when the pack has just come to a good end."""

    hang: Hang
    bed: Bed

    def cancel(self, pack_id: str) -> None:
        self.bed.trouble.release(self.hang)


def states(bed: Bed, backfill: Backfill) -> set[tuple[SliceState, int]]:
    return {(part.state, part.failures) for part in bed.slices(backfill)}


def test_a_lost_lease_cancels_the_running_pack(bed: Bed) -> None:
    """Blocked for good, it would hold its slot for good: nothing else would run."""
    hang = bed.trouble.hang("read")
    backfill = bed.backfill()
    with bed.working(lease_seconds=1.5):
        assert hang.reached.wait(SECONDS)
        lost = next(part for part in bed.slices(backfill) if part.state is SliceState.RUNNING)
        # as if another worker had found the lease run out
        bed.store.release_slices([(lost.id, lost.attempt)])
        ended = bed.wait(backfill, Status.COMPLETED)

    assert hang.left.is_set()
    assert bed.memory.ids() == EVERY_ID
    assert (lost.id, lost.attempt) not in bed.memory.delivered
    assert ended.counters.slices_completed == SLICES


def test_of_a_pack_that_lost_one_slice_the_others_are_handed_back(bed: Bed) -> None:
    hang = bed.trouble.hang("read")
    backfill = bed.backfill()
    with bed.working(lease_seconds=1.5):
        assert hang.reached.wait(SECONDS)
        held = [part for part in bed.slices(backfill) if part.state is SliceState.RUNNING]
        assert len(held) > 1
        bed.store.release_slices([(held[0].id, held[0].attempt)])
        bed.wait(backfill, Status.COMPLETED)

    # a lease that is left to run out counts as a failure
    assert states(bed, backfill) == {(SliceState.COMPLETED, 0)}


def test_a_stop_lets_a_running_pack_finish_within_the_grace(bed: Bed) -> None:
    hang = bed.trouble.hang("read")
    backfill = bed.backfill()
    with bed.working(grace_seconds=SECONDS) as worker:
        assert hang.reached.wait(SECONDS)
        worker.stop()
        bed.trouble.release(hang)

    counters = bed.look(backfill).counters
    assert counters.slices_claimed == 0
    assert 0 < counters.slices_completed < SLICES


def test_a_stop_cancels_what_does_not_end_within_the_grace(bed: Bed) -> None:
    hang = bed.trouble.hang("read")
    backfill = bed.backfill()
    with bed.working():
        assert hang.reached.wait(SECONDS)

    assert hang.left.is_set()  # this engine goes on with whatever was not cancelled
    assert states(bed, backfill) == UNTOUCHED
    assert not bed.memory.delivered


def test_what_does_not_let_go_is_handed_back_all_the_same(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "LET_GO_SECONDS", 0.1)
    hang = bed.trouble.hang("read", deaf=True)
    backfill = bed.backfill()
    with bed.working():
        assert hang.reached.wait(SECONDS)

    assert not hang.left.is_set()
    assert states(bed, backfill) == UNTOUCHED
    bed.trouble.release(hang)
    _ended("slot-")
    assert states(bed, backfill) == UNTOUCHED


def test_what_ends_well_after_it_was_given_up_is_neither_published_nor_finished(
    bed: Bed,
) -> None:
    engine = bed.engine = LateEngine(bed.connectors)
    engine.bed, engine.hang = bed, bed.trouble.hang("written")
    backfill = bed.backfill()
    with bed.working():
        assert engine.hang.reached.wait(SECONDS)

    assert bed.trouble.met["written"] > 1  # the pack came to its end
    assert bed.trouble.met["publish"] == 0
    assert states(bed, backfill) == UNTOUCHED


def test_a_stop_hands_back_what_is_being_planned(bed: Bed) -> None:
    hang = bed.trouble.hang("check")
    backfill = bed.backfill()
    with bed.working():
        assert hang.reached.wait(SECONDS)

    claim = bed.store.claim_plan("another", 30.0)
    assert claim is not None
    assert (claim.backfill.id, claim.failures) == (backfill.id, 0)
    bed.trouble.release(hang)
    _ended("plan-")
    assert bed.slices(backfill) == ()  # the plan of the claim that was handed back


def test_a_claim_that_was_asked_for_before_the_stop_is_handed_back_too(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, claim_plan = threading.Event(), bed.store.claim_plan

    def claim_slowly(
        worker: str, lease_seconds: float, but_teams: Collection[int] = ()
    ) -> BackfillClaim | None:
        asked.set()
        threading.Event().wait(0.5)  # a store that takes longer than the grace
        return claim_plan(worker, lease_seconds)

    monkeypatch.setattr(bed.store, "claim_plan", claim_slowly)
    hang = bed.trouble.hang("check")
    bed.backfill()
    with bed.working(grace_seconds=0.0):
        assert asked.wait(SECONDS)

    assert claim_plan("another", 30.0) is not None
    bed.trouble.release(hang)
    _ended("plan-")


def test_a_stop_amid_a_seal_does_not_say_that_it_is_done(bed: Bed) -> None:
    hang = bed.trouble.hang("seal")
    backfill = bed.backfill(seals=True)
    with bed.working():
        assert hang.reached.wait(SECONDS)

    assert bed.look(backfill).status is Status.RUNNING
    bed.trouble.release(hang)
    _ended("seal-")
    # the claim was not handed back: until its lease runs out, the sink's word still counts
    assert bed.look(backfill).status is Status.COMPLETED


def _ended(prefix: str) -> None:
    def alive() -> list[threading.Thread]:
        return [each for each in threading.enumerate() if each.name.startswith(prefix)]

    until(lambda: not alive(), f"the end of {prefix}…", SECONDS)
