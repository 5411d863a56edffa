"""What a worker does now and then: asking about lost attempts, clearing up, keeping warm."""

import pytest

from refill.domain.backfill import Status
from refill.domain.errors import SinkRefused, SinkUnavailable
from refill.domain.slice import SliceState
from refill.packs.in_process import InProcessEngine
from refill.worker import housekeeping, reconciler
from refill.worker import worker as worker_module
from tests.contract.worker.bed import EVERY_ID, SECONDS, SLICES, Bed
from tests.contract.worker.elsewhere import claim_all, deliver_and_vanish
from tests.waiting import until


class CountingEngine(InProcessEngine):
    warmed = 0

    def keep_warm(self) -> None:
        self.warmed += 1


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "TICK_SECONDS", 0.05)
    monkeypatch.setattr(housekeeping, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(reconciler, "LOOK_SECONDS", 0.05)


def test_what_a_lost_worker_delivered_is_recorded_and_sealed(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "SEAL_LOOK_SECONDS", 3600.0)
    backfill = bed.backfill("marking", seals=True)
    deliver_and_vanish(bed, backfill)
    bed.store.pause_backfill(1, backfill.id)
    with bed.working():
        ended = bed.wait(backfill, Status.COMPLETED)

    assert ended.counters.slices_completed == SLICES
    assert ended.counters.rows_delivered == len(EVERY_ID)
    assert bed.memory.ids() == EVERY_ID
    assert bed.memory.sealed == [backfill.id]


def test_a_sink_whose_markers_stay_is_not_asked(bed: Bed) -> None:
    backfill, marking = bed.backfill(), bed.backfill("marking")
    for each in (backfill, marking):
        deliver_and_vanish(bed, each)
        bed.store.pause_backfill(1, each.id)
    with bed.working():
        bed.wait(marking, Status.COMPLETED)

    assert bed.look(backfill).counters.slices_completed == 0
    assert bed.trouble.met["delivered"] == SLICES


def test_what_a_cancelled_backfill_staged_is_discarded_when_nothing_of_it_runs(bed: Bed) -> None:
    bed.trouble.fail("publish", SinkUnavailable("It went away.", retry_after_seconds=60))
    backfill = bed.backfill()
    hang = bed.trouble.hang("stage", skip=1)
    with bed.working(grace_seconds=SECONDS):
        assert hang.reached.wait(SECONDS)
        bed.store.cancel_backfill(1, backfill.id, None)
        assert bed.memory.staged  # by the pack that could not publish it
        bed.let_chores_run()
        assert bed.memory.discarded == []
        bed.trouble.release(hang)
        until(lambda: bed.memory.discarded, "the discard", SECONDS)

    assert bed.memory.discarded == [backfill.id]
    assert not bed.memory.staged


def test_what_a_failed_backfill_staged_is_kept_for_its_retry(bed: Bed) -> None:
    bed.trouble.fail("publish", SinkRefused("The disk is full."))
    backfill = bed.backfill()
    with bed.working():
        bed.wait(backfill, Status.FAILED)
        bed.let_chores_run()
        assert bed.memory.staged
        bed.store.retry_backfill(1, backfill.id)
        bed.wait(backfill, Status.COMPLETED)

    assert bed.memory.discarded == []
    assert bed.memory.ids() == EVERY_ID


def test_the_leases_of_a_worker_that_is_gone_are_swept(bed: Bed) -> None:
    backfill = bed.backfill()
    claim_all(bed, backfill, lease_seconds=0.2)
    with bed.working(lease_seconds=1.5):
        bed.wait(backfill, Status.COMPLETED)

    assert {(part.state, part.failures) for part in bed.slices(backfill)} == {
        (SliceState.COMPLETED, 1)
    }


def test_schedules_are_looked_at(bed: Bed) -> None:
    with bed.working():
        until(lambda: bed.rounds >= 2, "two looks", SECONDS)


def test_an_idle_engine_is_kept_warm(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "WARM_AFTER_SECONDS", 0.0)
    engine = bed.engine = CountingEngine(bed.connectors)
    with bed.working():
        until(lambda: engine.warmed, "a touch", SECONDS)


def test_a_busy_engine_is_not_touched(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "WARM_AFTER_SECONDS", 0.01)
    engine = bed.engine = CountingEngine(bed.connectors)
    hang = bed.trouble.hang("read")
    bed.backfill()
    with bed.working():
        assert hang.reached.wait(SECONDS)
        bed.let_chores_run()
        warmed = engine.warmed
        bed.let_chores_run()
        assert engine.warmed == warmed
