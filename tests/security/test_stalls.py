"""Nothing that a tenant makes wait waits for ever, and nobody else waits with it."""

import pytest

from refill.domain.backfill import Backfill, Status
from refill.domain.slice import SliceState
from refill.worker import stalls as stalls_module
from refill.worker.seats import AT_ONCE
from tests.contract.worker.bed import EVERY_ID, SECONDS, Bed
from tests.contract.worker.conftest import bed, migrated
from tests.waiting import until

__all__ = ["bed", "migrated"]  # fixtures

STALL = {"stall_seconds": 0.4, "max_failures": 2}


def errors(bed: Bed, backfill: Backfill) -> set[str | None]:
    return {part.error_code for part in bed.slices(backfill)}


@pytest.mark.parametrize("point", ["read", "write", "stage", "publish"])
def test_a_slice_without_progress_is_cut_and_tried_again(bed: Bed, point: str) -> None:
    hang = bed.trouble.hang(point)
    backfill = bed.backfill()
    with bed.working(**STALL):
        assert hang.left.wait(SECONDS)
        bed.wait(backfill, Status.COMPLETED)
    assert bed.memory.ids() == EVERY_ID


def test_what_always_stands_still_fails_with_a_sentence(bed: Bed) -> None:
    bed.trouble.hang("read", times=99)
    backfill = bed.backfill()
    with bed.working(stall_seconds=0.2, max_failures=8):
        ended = bed.wait(backfill, Status.FAILED)
    assert "made no progress for 0.2 s" in (ended.error or "")
    assert errors(bed, backfill) == {"stalled"}
    assert max(part.failures for part in bed.slices(backfill)) == 2  # each holds a slot


@pytest.mark.parametrize("point", ["read", "stage"])
def test_a_pack_that_cannot_be_ended_does_not_keep_its_slots_successor(
    bed: Bed, point: str
) -> None:
    hang = bed.trouble.hang(point, deaf=True)
    stuck, other = bed.backfill(), bed.backfill(pipeline_name="other")
    with bed.working(**STALL):
        assert hang.reached.wait(SECONDS)
        bed.wait(other, Status.COMPLETED)
        bed.wait(stuck, Status.COMPLETED)
        assert not hang.left.is_set()
        bed.trouble.release(hang)
        assert hang.left.wait(SECONDS)
    # what it says in the end counts for nothing
    assert bed.memory.ids() == sorted(EVERY_ID * 2)


def test_four_plans_on_a_silent_source_do_not_stop_another_teams(bed: Bed) -> None:
    hang = bed.trouble.hang("check", times=AT_ONCE, deaf=True)
    team = bed.store.create_team("other").id
    for _ in range(AT_ONCE + 2):
        bed.backfill()
    with bed.working():
        until(lambda: bed.trouble.met["check"] == AT_ONCE, "the silent plans", SECONDS)
        other = bed.backfill(team_id=team)
        until(
            lambda: bed.store.get_backfill(team, other.id).status is Status.COMPLETED,
            "the other team's backfill",
            SECONDS,
        )
        bed.trouble.release(hang)


@pytest.mark.parametrize("deaf", [False, True])
@pytest.mark.parametrize("point", ["check", "seal"])
def test_a_plan_or_a_last_step_without_progress_is_ended(bed: Bed, point: str, deaf: bool) -> None:
    hang = bed.trouble.hang(point, deaf=deaf)
    backfill = bed.backfill(seals=True)
    with bed.working(**STALL):
        assert hang.reached.wait(SECONDS)
        bed.wait(backfill, Status.COMPLETED)
        assert hang.left.is_set() is not deaf
        bed.trouble.release(hang)


def test_a_plan_that_always_stands_still_fails_with_a_sentence(bed: Bed) -> None:
    bed.trouble.hang("check", times=99)
    backfill = bed.backfill()
    with bed.working(**STALL):
        ended = bed.wait(backfill, Status.FAILED)
    assert "made no progress" in (ended.error or "")


@pytest.mark.parametrize("deaf", [False, True])
def test_cancelling_ends_what_stands_still(
    bed: Bed, deaf: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stalls_module.Stalls.__init__, "__kwdefaults__", SOON)
    hang = bed.trouble.hang("read", deaf=deaf)
    backfill = bed.backfill()
    with bed.working():
        assert hang.reached.wait(SECONDS)
        bed.store.cancel_backfill(1, backfill.id, None)
        until(
            lambda: not bed.look(backfill).counters.slices_claimed, "the end of the pack", SECONDS
        )
        assert hang.left.is_set() is not deaf
        bed.trouble.release(hang)
    assert {part.state for part in bed.slices(backfill)} == {SliceState.CANCELLED}


SOON = {"cancel_seconds": 0.1, "let_go_seconds": 0.2}
