"""What a crash left is mended; what is long over is forgotten."""

from datetime import date

import pytest
import sqlalchemy as sa

from refill.domain.backfill import Status
from refill.domain.errors import Conflict, NotFound, Superseded
from refill.domain.slice import Reject, SliceState
from refill.store.port import Store
from refill.store.records import Pack, PackLimits, StoredAnswer, Swept
from tests.contract.store.conftest import Between
from tests.contract.store.factories import (
    AT_ONCE,
    FIRST,
    dated_slices,
    dates_from,
    done,
    failed,
    finish,
    key_slices,
    new_sink_backfill,
    new_transfer_backfill,
    plan,
    run_all,
)

ALL = PackLimits(slots=1)
GONE = -1.0  # a lease that ran out before it began


def claim(store: Store, lease: float = GONE) -> Pack:
    pack = store.claim_pack("w", ALL, lease)
    assert pack is not None
    return pack


def change(store: Store, sql: str, **values: object) -> None:
    with store._backend.write() as connection:  # type: ignore[attr-defined]
        connection.execute(sa.text(sql), values)


def age(store: Store, backfill_id: int, days: int) -> None:
    change(
        store,
        "UPDATE backfills SET ended_at = ended_at - :by WHERE id = :id",
        by=days * 86_400_000_000,
        id=backfill_id,
    )


def test_a_slice_whose_lease_ran_out_is_pending_again_and_counts_a_failure(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(1))
    lost = claim(store)
    assert store.sweep(AT_ONCE) == Swept(leases_lost=1)
    part = store.list_slices(made.id).items[0]
    assert (part.state, part.failures, part.error_code) == (SliceState.PENDING, 1, "worker_lost")
    assert store.gauges().leases_lost == 1
    again = claim(store, 30)
    assert finish(store, lost, done).superseded
    assert finish(store, again, done).status is Status.COMPLETED


def test_a_slice_that_kills_its_worker_does_not_do_so_for_ever(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(1))
    claim(store)
    assert store.sweep(AT_ONCE) == Swept(leases_lost=1)
    claim(store)
    assert store.sweep(AT_ONCE) == Swept(leases_lost=1, backfills_ended=1)
    over = store.get_backfill(1, made.id)
    assert over.status is Status.FAILED
    assert over.error_code == "worker_lost"
    assert store.gauges().leases_lost == 2


def test_counts_of_a_failed_backfill_outlive_its_slices(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(2))
    pack = claim(store, 30)
    finish(store, pack, lambda c: done(c) if c.slice.index else failed(c))
    run_all(store)
    age(store, made.id, 100)
    before = store.get_backfill(1, made.id).counters
    assert store.prune(90) == 2
    store.cancel_backfill(1, made.id, None)
    assert store.get_backfill(1, made.id).counters == before
    assert before.rows_delivered == 10


def test_a_lease_that_runs_is_left_alone(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(1))
    pack = claim(store, GONE)
    held = [(pack.slices[0].slice.id, 1)]
    store.heartbeat("w", held, [], 30)
    assert store.sweep(AT_ONCE) == Swept()
    assert store.list_slices(made.id).items[0].state is SliceState.RUNNING


def test_of_several_only_what_was_lost_is_mended(store: Store) -> None:
    made = [
        plan(store, new_sink_backfill(pipeline_id=name), key_slices(4, target=name)).id
        for name in ("a", "b")
    ]
    for lease in (GONE, 30):
        for _ in made:
            assert store.claim_pack("w", PackLimits(max_slices=1), lease) is not None
    assert store.sweep(AT_ONCE) == Swept(leases_lost=2)
    assert store.gauges().leases_lost == 2
    for backfill_id in made:
        states = [part.state for part in store.list_slices(backfill_id).items]
        assert states == [SliceState.PENDING, SliceState.RUNNING, *[SliceState.PENDING] * 2]


def test_a_sweep_leaves_alone_what_needs_no_mending(store: Store) -> None:
    def planned(name: str, **changes: object) -> int:
        new = new_sink_backfill(pipeline_id=name, **changes)
        return plan(store, new, key_slices(1, target=name)).id

    for outcome in (done, failed):
        planned(outcome.__name__)
        run_all(store, outcome)
    planned("sealable", seals=True)
    run_all(store)
    store.cancel_backfill(1, planned("cancelled"), None)
    ending = planned("cancelled while it ran")
    claim(store, 30)
    store.cancel_backfill(1, ending, None)
    planned("running")
    claim(store, 30)
    store.pause_backfill(1, planned("paused"))
    planned("scheduled")
    store.insert_backfill(new_sink_backfill(pipeline_id="being planned"))
    assert store.claim_plan("w", 30) is not None
    unplanned = store.insert_backfill(new_sink_backfill(pipeline_id="unplanned"))
    store.pause_backfill(1, unplanned.id)
    store.insert_backfill(new_sink_backfill(pipeline_id="created"))

    before = store.list_backfills(1).items
    assert store.sweep(AT_ONCE) == Swept()
    assert store.list_backfills(1).items == before


def test_a_lost_slice_of_a_cancelled_backfill_is_cancelled(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(1))
    claim(store)
    store.cancel_backfill(1, made.id, None)
    plan(store, new_sink_backfill(), key_slices(1))
    assert store.claim_pack("w", ALL, 30) is None
    assert store.sweep(AT_ONCE) == Swept(leases_lost=1)
    assert store.list_slices(made.id).items[0].state is SliceState.CANCELLED
    assert store.get_backfill(1, made.id).counters.slices_cancelled == 1
    # and its successor may go on
    assert claim(store, 30).slices[0].fence == 2


def test_a_plan_whose_lease_ran_out_is_claimed_again_and_given_up_in_the_end(store: Store) -> None:
    made = store.insert_backfill(new_sink_backfill())
    lost = store.claim_plan("w", GONE)
    assert lost is not None
    assert store.claim_plan("w", 30) is None
    assert store.sweep(AT_ONCE) == Swept(leases_lost=1)
    again = store.claim_plan("w", GONE)
    assert again is not None
    assert again.failures == 1
    with pytest.raises(Superseded):
        store.save_plan(lost, key_slices(1), rows_estimated=0)
    assert store.sweep(AT_ONCE) == Swept(leases_lost=1, backfills_ended=1)
    assert store.get_backfill(1, made.id).status is Status.FAILED
    assert store.gauges().leases_lost == 2


def test_a_claim_that_is_kept_is_left_alone_and_another_is_not(store: Store) -> None:
    kept = store.insert_backfill(new_sink_backfill(pipeline_id="a"))
    lost = store.insert_backfill(new_sink_backfill(pipeline_id="b"))
    claims = [store.claim_plan("w", GONE), store.claim_plan("w", GONE)]
    assert [claim and claim.backfill.id for claim in claims] == [kept.id, lost.id]
    store.heartbeat("w", [], [(kept.id, 1)], 30)
    assert store.sweep(AT_ONCE) == Swept(leases_lost=1)
    again = store.claim_plan("w", 30)
    assert again is not None
    assert again.backfill.id == lost.id


def test_a_plan_of_a_paused_backfill_whose_lease_ran_out_is_lost_too(store: Store) -> None:
    made = store.insert_backfill(new_sink_backfill())
    assert store.claim_plan("w", GONE) is not None
    store.pause_backfill(1, made.id)
    assert store.sweep(AT_ONCE) == Swept(leases_lost=1)


def test_what_is_heard_of_again_while_the_sweep_looks_is_not_lost(
    store: Store, before_write: Between
) -> None:
    made = plan(store, new_sink_backfill(pipeline_id="a"), key_slices(1))
    held = [(claim(store).slices[0].slice.id, 1)]
    before_write(store, lambda: store.heartbeat("w", held, [], 30))
    assert store.sweep(AT_ONCE) == Swept()
    assert store.list_slices(made.id).items[0].failures == 0
    other = store.insert_backfill(new_sink_backfill(pipeline_id="b"))
    assert store.claim_plan("w", GONE) is not None
    before_write(store, lambda: store.heartbeat("w", [], [(other.id, 1)], 30))
    assert store.sweep(AT_ONCE) == Swept()
    assert store.claim_plan("w", 30) is None


@pytest.mark.parametrize("slices", [0, 1])
def test_a_seal_whose_lease_ran_out_is_claimed_again(store: Store, slices: int) -> None:
    plan(store, new_sink_backfill(seals=True), key_slices(slices))
    run_all(store)
    assert store.claim_seal("w", GONE) is not None
    assert store.sweep(AT_ONCE) == Swept(leases_lost=1)
    assert store.claim_seal("w", 30) is not None


@pytest.mark.parametrize("status", ["scheduled", "running", "paused"])
@pytest.mark.parametrize("seals", [False, True])
def test_a_backfill_left_open_with_all_slices_ended_is_ended(
    store: Store, status: str, seals: bool
) -> None:
    completed = plan(store, new_sink_backfill(pipeline_id="a"), key_slices(2, target="a"))
    new = new_sink_backfill(pipeline_id="b", seals=seals)
    broken = plan(store, new, key_slices(2, target="b"))
    change(store, "UPDATE backfills SET status = :status", status=status)
    change(store, "UPDATE slices SET state = 'completed', rows_read = 4")
    change(
        store,
        "UPDATE slices SET state = 'failed', error = 'x' WHERE backfill_id = :id AND \"index\" = 1",
        id=broken.id,
    )
    plan(store, new_sink_backfill(pipeline_id="c"), key_slices(1, target="c"))
    assert store.claim_seal("w", 30) is None
    assert store.sweep(AT_ONCE) == Swept(backfills_ended=2)
    over = store.get_backfill(1, completed.id)
    assert over.status is Status.COMPLETED
    assert over.counters.rows_read == 8
    assert store.get_backfill(1, broken.id).error == "1 of 2 slices failed; first: x"
    assert store.sweep(AT_ONCE) == Swept()


def test_what_ended_long_ago_is_pruned_and_its_counters_stay(store: Store) -> None:
    old = plan(store, new_sink_backfill(), key_slices(3))
    reject = Reject(key=("1",), reason="bad")
    run_all(store, lambda c: done(c).model_copy(update={"rejects": (reject,)}))
    age(store, old.id, 100)
    recent = plan(store, new_sink_backfill(), key_slices(2))
    run_all(store, lambda c: done(c).model_copy(update={"rejects": (reject,)}))
    answer = StoredAnswer(body_hash="h", status=200, body="{}")
    store.reserve_answer(1, "r", "k", "h")
    store.save_answer(1, "r", "k", answer)
    assert store.prune(90) == 3
    assert store.list_slices(old.id).items == ()
    assert store.list_rejects(old.id).items == ()
    assert len(store.list_slices(recent.id).items) == 2
    assert len(store.list_rejects(recent.id).items) == 2
    assert store.get_backfill(1, old.id).counters.rows_delivered == 30
    assert store.reserve_answer(1, "r", "k", "h") == answer
    change(store, "UPDATE answers SET created_at = 0")
    assert store.prune(90) == 0
    assert store.reserve_answer(1, "r", "k", "h") is None


def test_what_was_cancelled_long_ago_is_pruned_too(store: Store) -> None:
    old = plan(store, new_transfer_backfill(days=2), dated_slices(dates_from(FIRST, 2)))
    store.cancel_backfill(1, old.id, None)
    age(store, old.id, 100)
    assert store.prune(90) == 2


def test_the_newest_completed_run_of_a_date_outlives_pruning(store: Store) -> None:
    first = plan(store, new_transfer_backfill(days=2), dated_slices(dates_from(FIRST, 2)))
    run_all(store)
    second = plan(store, new_transfer_backfill(days=1), dated_slices(dates_from(FIRST, 1)))
    run_all(store)
    age(store, first.id, 100)
    age(store, second.id, 100)
    assert store.prune(90) == 1
    assert set(store.completed_dates(7)) == {date(2026, 1, 1), date(2026, 1, 2)}
    assert store.prune(90) == 0


def test_a_failed_backfill_whose_slices_were_pruned_cannot_be_retried(store: Store) -> None:
    old = plan(store, new_sink_backfill(), key_slices(1))
    run_all(store, failed)
    age(store, old.id, 100)
    store.prune(90)
    with pytest.raises(Conflict, match="new backfill"):
        store.retry_backfill(1, old.id)


def test_what_is_retried_while_it_is_pruned_is_left_alone(
    store: Store, before_write: Between
) -> None:
    old = plan(store, new_sink_backfill(), key_slices(2))
    run_all(store, failed)
    age(store, old.id, 100)
    before_write(store, lambda: store.retry_backfill(1, old.id))
    assert store.prune(90) == 0
    run_all(store)
    over = store.get_backfill(1, old.id)
    assert (over.status, over.counters.rows_delivered) == (Status.COMPLETED, 20)


def test_gauges_count_what_is_there(store: Store) -> None:
    empty = store.gauges()
    assert empty.backfills_by_status["running"] == 0
    assert empty.queue_age_seconds == 0
    plan(store, new_sink_backfill(pipeline_id="a"), key_slices(4, target="a"))
    store.insert_backfill(new_sink_backfill(pipeline_id="b"))
    pack = store.claim_pack("w", ALL, 30)
    assert pack is not None
    finish(store, pack, done)
    gauges = store.gauges()
    assert gauges.backfills_by_status["running"] == 1
    assert gauges.backfills_by_status["created"] == 1
    assert gauges.slices_by_state == {
        "pending": 2,
        "running": 0,
        "completed": 2,
        "failed": 0,
        "cancelled": 0,
    }
    assert (gauges.rows_read, gauges.rows_delivered, gauges.attempts) == (20, 20, 2)
    assert (gauges.slices_completed, gauges.slice_seconds) == (2, 1.0)
    assert gauges.queue_age_seconds > 0


def test_a_run_that_was_pruned_is_not_found(store: Store) -> None:
    old = plan(store, new_transfer_backfill(days=1), dated_slices([FIRST]))
    run_id = store.list_slices(old.id).items[0].id
    run_all(store, failed)
    age(store, old.id, 100)
    store.prune(90)
    with pytest.raises(NotFound):
        store.get_run(1, run_id)
