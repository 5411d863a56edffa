"""What a worker brings to its end, and who wakes whom for it."""

import threading

import pytest

from refill.domain.backfill import Status
from refill.domain.errors import EngineUnavailable, Misconfigured, SourceRefused
from refill.domain.slice import SliceState
from refill.packs.in_process import InProcessEngine
from refill.worker import housekeeping, sealer
from refill.worker import worker as worker_module
from tests.contract.worker.bed import EVERY_ID, SECONDS, SLICES, Bed
from tests.contract.worker.elsewhere import claim_all, finish
from tests.memory import DAY, MemorySink


@pytest.fixture
def woken_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sealer never looks by itself."""
    monkeypatch.setattr(worker_module, "SEAL_LOOK_SECONDS", 3600.0)


def test_a_backfill_runs_from_created_to_completed(bed: Bed) -> None:
    backfill = bed.backfill()
    with bed.working(slots=2):
        ended = bed.wait(backfill, Status.COMPLETED)

    assert bed.memory.ids() == EVERY_ID
    assert not bed.memory.staged
    assert ended.counters.slices_completed == SLICES
    assert ended.counters.rows_read == ended.counters.rows_delivered == len(EVERY_ID)


def test_a_date_of_a_transfer_is_a_slice(bed: Bed) -> None:
    backfill = bed.dates([DAY])
    with bed.working():
        ended = bed.wait(backfill, Status.COMPLETED)

    assert ended.counters.slices_completed == 1
    assert bed.memory.ids() == EVERY_ID


def test_a_slice_that_is_refused_fails_and_the_others_finish(bed: Bed) -> None:
    bed.trouble.fail("read", SourceRefused("Permission denied."))
    backfill = bed.backfill()
    with bed.working():
        ended = bed.wait(backfill, Status.FAILED)

    assert (ended.counters.slices_completed, ended.counters.slices_failed) == (SLICES - 1, 1)
    (failed,) = (part for part in bed.slices(backfill) if part.state is SliceState.FAILED)
    assert (failed.failures, failed.error) == (1, "Permission denied.")


def test_a_plan_that_is_refused_fails_the_backfill(bed: Bed) -> None:
    bed.trouble.fail("check", SourceRefused("Permission denied."))
    backfill = bed.backfill()
    with bed.working():
        ended = bed.wait(backfill, Status.FAILED)

    assert ended.error == "Permission denied."


def test_sql_is_checked_at_planning(bed: Bed) -> None:
    backfill = bed.backfill(transform="select * from source")
    with bed.working():
        ended = bed.wait(backfill, Status.FAILED)

    assert ended.error_code == "transform_failed"
    assert bed.slices(backfill) == ()


@pytest.mark.usefixtures("woken_only")
def test_the_last_finish_wakes_the_sealer(bed: Bed) -> None:
    with bed.working():
        backfill = bed.backfill(seals=True)
        bed.wait(backfill, Status.COMPLETED)

    assert bed.memory.sealed == [backfill.id]


@pytest.mark.usefixtures("woken_only")
def test_a_plan_without_slices_wakes_the_sealer(bed: Bed) -> None:
    with bed.working():
        backfill = bed.dates([], seals=True)
        bed.wait(backfill, Status.COMPLETED)

    assert bed.memory.sealed == [backfill.id]


def test_what_another_process_left_to_seal_wakes_nobody_and_is_found(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "SEAL_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(housekeeping, "TICK_SECONDS", 0.05)
    monkeypatch.setattr(housekeeping, "LOOK_SECONDS", 0.0)
    backfill = bed.backfill(seals=True)
    packs = claim_all(bed, backfill)
    with bed.working():
        bed.let_chores_run()  # by now the sealer has looked, and found nothing
        finish(bed, packs)
        bed.wait(backfill, Status.COMPLETED)

    assert bed.memory.sealed == [backfill.id]


def test_a_second_worker_in_the_same_home_is_refused(bed: Bed) -> None:
    with bed.working(), pytest.raises(Misconfigured, match="Another worker"):
        bed.make_worker().run()


def test_an_engine_that_died_ends_the_worker(bed: Bed) -> None:
    """Whoever started it starts it again, and with it an engine."""
    engine = bed.engine = InProcessEngine(bed.connectors)
    worker, hang, raised = bed.make_worker(), bed.trouble.hang("read"), []

    def run() -> None:
        try:
            worker.run()
        except EngineUnavailable as exc:
            raised.append(exc)

    backfill = bed.backfill()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert hang.reached.wait(SECONDS)
    engine.stop()
    thread.join(SECONDS)

    assert len(raised) == 1
    assert {part.state for part in bed.slices(backfill)} == {SliceState.PENDING}


def test_what_is_gone_before_the_last_word_is_delivered_again(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    # looked at one by one, so that the last page counts too
    monkeypatch.setattr(sealer, "_LOOKED_AT_ONCE", 1)
    hang = bed.trouble.hang("missing")
    with bed.working(slots=2):
        backfill = bed.backfill(seals=True)
        assert hang.reached.wait(SECONDS)
        gone = max(bed.memory.delivered)
        del bed.memory.delivered[gone]
        bed.trouble.release(hang)
        ended = bed.wait(backfill, Status.COMPLETED)

    assert bed.memory.ids() == EVERY_ID
    assert ended.counters.rows_delivered == len(EVERY_ID)
    (again,) = (part for part in bed.slices(backfill) if part.failures)
    assert (again.id, again.attempt) == (gone[0], 2)
    assert bed.memory.sealed == [backfill.id]


def test_what_is_gone_each_time_fails_the_backfill_in_the_end(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemorySink, "missing", lambda self, job, slices: list(slices)[:1])
    with bed.working(slots=2, max_failures=2):
        backfill = bed.backfill(seals=True)
        ended = bed.wait(backfill, Status.FAILED)

    assert ended.error_code == "delivery_lost"
    assert bed.memory.sealed == []
