"""Backfills from created to their end, through a real store and real Spark."""

import dataclasses
import json
import threading
from collections.abc import Callable
from datetime import date

import pytest

from refill.domain.backfill import Status
from refill.domain.errors import EngineUnavailable, Misconfigured
from refill.domain.slice import SliceState
from refill.worker import Worker
from tests.integration.worker.bed import CONNECTORS, Bed
from tests.waiting import until

pytestmark = pytest.mark.spark


def test_a_backfill_is_planned_run_published_and_completed(bed: Bed) -> None:
    backfill = bed.backfill(bed.transfer())
    with bed.working():
        ended = bed.wait(backfill, Status.COMPLETED)

    assert (ended.counters.slices_completed, ended.counters.rows_delivered) == (5, 50)
    published = sorted(path.name for path in bed.out.iterdir())
    assert len(published) == 5
    assert not any(name.startswith("_") for name in published)


def test_a_slice_that_always_fails_stops_at_its_limit_and_the_others_finish(
    make_bed: Callable[..., Bed],
) -> None:
    bed = make_bed(max_failures=2)
    backfill = bed.backfill(bed.transfer(write_fails_at=()), days=4)
    bad = bed.backfill(bed.transfer(read_fails_at=(backfill.spec.dates[1].toordinal(),)), days=4)
    with bed.working():
        assert bed.wait(backfill, Status.COMPLETED)
        ended = bed.wait(bad, Status.FAILED)

    assert (ended.counters.slices_completed, ended.counters.slices_failed) == (3, 1)
    (failed,) = bed.store.list_slices(bad.id, states=[SliceState.FAILED]).items
    assert (failed.failures, failed.error) == (2, "The source went away.")


def test_mended_options_reach_a_backfill_that_is_retried(make_bed: Callable[..., Bed]) -> None:
    bed = make_bed(max_failures=1)
    transfer = bed.transfer(read_fails_at=(date(2024, 1, 2).toordinal(),))
    backfill = bed.backfill(transfer, days=4)
    with bed.working():
        bed.wait(backfill, Status.FAILED)
        database = bed.store.get_database(1, transfer.database_id)
        mended = {**database.options, "read_fails_at": ()}
        bed.store.update_database(dataclasses.replace(database, options=mended))
        bed.store.retry_backfill(1, backfill.id)
        ended = bed.wait(backfill, Status.COMPLETED)

    assert ended.counters.slices_completed == 4


def test_sql_is_checked_at_planning(bed: Bed) -> None:
    backfill = bed.backfill(bed.transfer(), transform="select id + doc.x as y from source")
    with bed.working():
        ended = bed.wait(backfill, Status.FAILED)

    assert ended.error_code == "transform_failed"


def test_a_stop_lets_a_running_pack_finish(bed: Bed) -> None:
    backfill = bed.backfill(bed.transfer(seconds=0.5), days=2)
    with bed.working() as worker:
        until(lambda: len(bed.engine.orders) == 2, "its packs")
        worker.stop()

    counters = bed.look(backfill).counters
    assert counters.slices_claimed == 0
    assert counters.slices_completed == 2


def test_after_the_grace_time_slices_are_handed_back_without_a_failure(
    make_bed: Callable[..., Bed],
) -> None:
    bed = make_bed(grace_seconds=0.2)
    backfill = bed.backfill(bed.transfer(seconds=60), days=2)
    with bed.working() as worker:
        until(lambda: len(bed.engine.orders) == 2, "its packs")
        worker.stop()

    slices = bed.store.list_slices(backfill.id).items
    assert {(part.state, part.failures) for part in slices} == {(SliceState.PENDING, 0)}


def test_a_lost_lease_cancels_the_pack_and_changes_nothing(
    make_bed: Callable[..., Bed],
) -> None:
    bed = make_bed(lease_seconds=1.5)
    backfill = bed.backfill(bed.transfer(seconds=30), days=1)
    with bed.working():
        until(lambda: len(bed.engine.orders) == 1, "its packs")
        (running,) = bed.store.list_slices(backfill.id).items
        # as if another worker had found the lease run out
        bed.store.release_slices([(running.id, running.attempt)])
        until(lambda: len(bed.engine.orders) >= 2, "its packs")
        (again,) = bed.store.list_slices(backfill.id).items
        bed.store.cancel_backfill(1, backfill.id, None)

    assert again.attempt == running.attempt + 1


def test_a_dead_engine_ends_the_worker(bed: Bed) -> None:
    worker = Worker(
        store=bed.store, engine=bed.engine, connectors=CONNECTORS, settings=bed.settings
    )
    raised: list[BaseException] = []

    def run() -> None:
        try:
            worker.run()
        except EngineUnavailable as exc:
            raised.append(exc)

    thread = threading.Thread(target=run)
    thread.start()
    assert worker.ready.wait(30)
    bed.engine.dead = True
    thread.join(20)

    assert len(raised) == 1


def test_a_second_worker_in_the_same_home_is_refused(bed: Bed) -> None:
    second = Worker(
        store=bed.store, engine=bed.engine, connectors=CONNECTORS, settings=bed.settings
    )
    with bed.working(), pytest.raises(Misconfigured, match="Another worker"):
        second.run()


def test_a_cancelled_backfill_delivers_nothing_more(bed: Bed) -> None:
    backfill = bed.backfill(bed.transfer(seconds=0.2), days=40)
    with bed.working():
        until(lambda: len(bed.engine.orders) >= 1, "its packs")
        bed.store.cancel_backfill(1, backfill.id, None)
        claimed = bed.look(backfill).counters.slices_claimed
        until(lambda: bed.look(backfill).counters.slices_claimed == 0, "the hand-back")

    ended = bed.look(backfill)
    assert ended.status is Status.CANCELLED
    assert ended.counters.slices_completed <= claimed
    assert len(list(bed.out.glob("[0-9]*.json"))) == ended.counters.slices_completed
    for path in bed.out.glob("[0-9]*.json"):
        assert len(json.loads(path.read_text())["rows"]) == 10
