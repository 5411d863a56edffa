"""Backfills: holds, lists, and the ways between their states."""

from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pytest
import sqlalchemy as sa

from refill.domain.backfill import Order, Origin, Status
from refill.domain.errors import Conflict, Invalid, NotFound
from refill.domain.pipeline import Kind
from refill.domain.retry import RetryPolicy
from refill.domain.slice import SliceState
from refill.store.port import Store
from refill.store.records import UNANSWERED, PackLimits, StoredAnswer
from tests.contract.store.factories import (
    FIRST,
    TERMINAL,
    dated_slices,
    dates_from,
    done,
    failed,
    finish,
    key_slices,
    make_spec,
    new_sink_backfill,
    new_transfer_backfill,
    plan,
    run_all,
    stumbled,
)

POLICY = RetryPolicy(max_failures=2)
MANY = PackLimits(slots=1)


def test_a_new_backfill_comes_back_as_it_was_asked_for(store: Store) -> None:
    new = new_transfer_backfill(
        days=3, order=Order.OLDEST_FIRST, max_concurrent=4, reason="late data"
    )
    made = store.insert_backfill(new)
    assert made.status is Status.CREATED
    assert made.spec == new.spec
    assert (made.range_start, made.range_end) == (date(2026, 1, 1), date(2026, 1, 3))
    assert (made.order, made.max_concurrent, made.reason) == (Order.OLDEST_FIRST, 4, "late data")
    assert (made.slices_planned, made.planned, made.created_user_id) == (3, False, 1)
    assert store.get_backfill(1, made.id) == made
    assert store.get_backfill_by_uid(1, made.uid) == made


def test_another_teams_backfill_is_not_found(store: Store) -> None:
    made = store.insert_backfill(new_sink_backfill())
    looks = [
        lambda: store.get_backfill(2, made.id),
        lambda: store.get_backfill_by_uid(2, made.uid),
        lambda: store.pause_backfill(2, made.id),
        lambda: store.resume_backfill(2, made.id),
        lambda: store.cancel_backfill(2, made.id, 1),
        lambda: store.retry_backfill(2, made.id),
    ]
    for look in looks:
        with pytest.raises(NotFound):
            look()


def test_asking_twice_with_the_same_uid_gives_the_same_backfill(store: Store) -> None:
    new = new_sink_backfill()
    first = store.insert_backfill(new)
    assert store.insert_backfill(new) == first


def test_a_table_that_is_held_is_a_conflict_that_names_the_holder(store: Store) -> None:
    first = store.insert_backfill(new_sink_backfill())
    with pytest.raises(Conflict) as caught:
        store.insert_backfill(new_sink_backfill())
    assert caught.value.other == first
    assert store.find_holder(Kind.SINK, "sink-1", ["public.orders"]) == first
    # another table of the sink, and the same table of another sink, are free
    store.insert_backfill(new_sink_backfill(holds=("public.a",)))
    store.insert_backfill(new_sink_backfill(pipeline_id="sink-2"))
    assert store.find_holder(Kind.SINK, "sink-3", ["public.orders"]) is None


def test_overlapping_dates_are_a_conflict_and_leave_nothing_behind(store: Store) -> None:
    first = store.insert_backfill(new_transfer_backfill(days=5))
    with pytest.raises(Conflict) as caught:
        store.insert_backfill(new_transfer_backfill(days=5, first=date(2026, 1, 5)))
    assert caught.value.other == first
    store.insert_backfill(new_transfer_backfill(days=5, first=date(2026, 1, 6)))
    assert len(store.list_backfills(1).items) == 2


@pytest.mark.parametrize("way", ["cancelled", "failed", "completed"])
def test_an_ended_backfill_holds_nothing(store: Store, way: str) -> None:
    first = plan(store, new_transfer_backfill(days=2), dated_slices(dates_from(FIRST, 2)))
    if way == "cancelled":
        store.cancel_backfill(1, first.id, 1)
    else:
        run_all(store, outcome=done if way == "completed" else failed)
    assert store.get_backfill(1, first.id).status == way
    assert store.find_holder(Kind.TRANSFER, "7", ["2026-01-01"]) is None
    store.insert_backfill(new_transfer_backfill(days=2))


def test_lists_are_newest_first_and_leave_scheduled_ones_out(store: Store) -> None:
    first = store.insert_backfill(new_sink_backfill(pipeline_id="a"))
    second = store.insert_backfill(new_transfer_backfill())
    store.insert_backfill(
        new_transfer_backfill(origin=Origin.SCHEDULE, holds=(), first=date(2026, 2, 1))
    )
    store.cancel_backfill(1, first.id, None)
    ids = [backfill.id for backfill in store.list_backfills(1).items]
    assert ids == [second.id, first.id]
    assert [b.id for b in store.list_backfills(1, kind=Kind.SINK).items] == [first.id]
    assert [b.id for b in store.list_backfills(1, pipeline_id="7").items] == [second.id]
    active = store.list_backfills(1, statuses=[Status.CREATED, Status.RUNNING]).items
    assert [b.id for b in active] == [second.id]
    assert store.list_backfills(2).items == ()
    latest = store.latest_backfill(1, Kind.TRANSFER, "7")
    assert latest is not None
    assert latest.id == second.id
    assert store.latest_backfill(1, Kind.SINK, "never") is None


def test_a_cursor_goes_on_where_the_page_ended_whatever_came_in_between(store: Store) -> None:
    made = [store.insert_backfill(new_sink_backfill(pipeline_id=str(n))).id for n in range(5)]
    page = store.list_backfills(1, limit=2)
    assert [b.id for b in page.items] == [made[4], made[3]]
    store.insert_backfill(new_sink_backfill(pipeline_id="new"))
    page = store.list_backfills(1, limit=2, cursor=page.next_cursor)
    assert [b.id for b in page.items] == [made[2], made[1]]
    page = store.list_backfills(1, limit=2, cursor=page.next_cursor)
    assert [b.id for b in page.items] == [made[0]]
    assert page.next_cursor is None


@pytest.mark.parametrize(
    "cursor", ["nonsense", "", "MS4tMQ", "é", "MS45OTk5OTk5OTk5OTk5OTk5OTk5OTk"]
)
def test_a_cursor_that_no_list_gave_is_invalid(store: Store, cursor: str) -> None:
    with pytest.raises(Invalid) as caught:
        store.list_backfills(1, cursor=cursor)
    assert "cursor" in caught.value.fields


def test_pausing_and_resuming_lead_back_to_where_it_was(store: Store) -> None:
    made = store.insert_backfill(new_transfer_backfill(days=1))
    paused = store.pause_backfill(1, made.id)
    assert paused.status is Status.PAUSED
    assert paused.paused_at is not None
    assert store.claim_plan("w", 30) is None
    resumed = store.resume_backfill(1, made.id)
    assert resumed.status is Status.CREATED
    assert resumed.paused_at is None
    claim = store.claim_plan("w", 30)
    assert claim is not None
    store.save_plan(claim, dated_slices([FIRST]), rows_estimated=0)
    store.pause_backfill(1, made.id)
    assert store.claim_pack("w", MANY, 30) is None
    assert store.resume_backfill(1, made.id).status is Status.SCHEDULED
    assert store.claim_pack("w", MANY, 30) is not None


def test_a_change_that_the_state_forbids_is_a_conflict(store: Store) -> None:
    made = store.insert_backfill(new_sink_backfill())
    store.pause_backfill(1, made.id)
    with pytest.raises(Conflict):
        store.pause_backfill(1, made.id)
    with pytest.raises(Conflict):
        store.retry_backfill(1, made.id)
    store.cancel_backfill(1, made.id, 1)
    for change in (store.pause_backfill, store.resume_backfill, store.retry_backfill):
        with pytest.raises(Conflict):
            change(1, made.id)
    with pytest.raises(Conflict):
        store.cancel_backfill(1, made.id, 1)


def test_a_failed_backfill_is_retried_not_resumed(store: Store) -> None:
    made = plan(store, new_transfer_backfill(days=1), dated_slices([FIRST]))
    run_all(store, outcome=failed)
    with pytest.raises(Conflict):
        store.resume_backfill(1, made.id)


def test_cancelling_cancels_what_is_pending_and_lets_finish_what_runs(store: Store) -> None:
    made = plan(store, new_transfer_backfill(days=4), dated_slices(dates_from(FIRST, 4)))
    pack = store.claim_pack("w", PackLimits(max_slices=1), 30)
    assert pack is not None
    cancelled = store.cancel_backfill(1, made.id, 1)
    assert cancelled.status is Status.CANCELLED
    assert cancelled.cancelled_user_id == 1
    assert cancelled.cancelled_at == cancelled.ended_at is not None
    assert (cancelled.counters.slices_cancelled, cancelled.counters.slices_claimed) == (3, 1)
    finished = finish(store, pack, done, policy=POLICY)
    assert finished.accepted
    after = store.get_backfill(1, made.id)
    assert after.status is Status.CANCELLED
    assert (after.counters.slices_completed, after.counters.slices_claimed) == (1, 0)
    assert after.counters.rows_delivered == 10


def test_what_fails_in_a_cancelled_backfill_is_not_tried_again(store: Store) -> None:
    made = plan(store, new_transfer_backfill(days=2), dated_slices(dates_from(FIRST, 2)))
    pack = store.claim_pack("w", MANY, 30)
    assert pack is not None
    store.cancel_backfill(1, made.id, 1)
    finish(store, pack, stumbled)
    states = {part.state for part in store.list_slices(made.id).items}
    assert states == {SliceState.CANCELLED}


def test_a_retry_runs_what_failed_with_a_fresh_budget(store: Store) -> None:
    made = plan(store, new_transfer_backfill(days=3), dated_slices(dates_from(FIRST, 3)))
    pack = store.claim_pack("w", PackLimits(slots=1, max_slices=1), 30)
    assert pack is not None
    finish(store, pack, done)
    run_all(store, outcome=failed)
    ended = store.get_backfill(1, made.id)
    assert ended.status is Status.FAILED
    assert ended.error == "2 of 3 slices failed; first: 2026-01-02: it broke"
    assert ended.error_code == "source_refused"
    assert ended.failed_at is not None
    retried = store.retry_backfill(1, made.id)
    assert retried.status is Status.SCHEDULED
    assert (retried.error, retried.error_code, retried.ended_at) == (None, None, None)
    assert retried.counters.slices_pending == 2
    slices = store.list_slices(made.id).items
    assert [part.failures for part in slices] == [0, 0, 0]
    assert [part.attempt for part in slices] == [1, 1, 1]
    run_all(store, outcome=done)
    over = store.get_backfill(1, made.id)
    assert over.status is Status.COMPLETED
    assert over.counters.rows_delivered == 30


def test_a_retry_of_some_dates_holds_and_runs_only_those(store: Store) -> None:
    made = plan(store, new_transfer_backfill(days=3), dated_slices(dates_from(FIRST, 3)))
    run_all(store, outcome=failed)
    with pytest.raises(Invalid) as caught:
        store.retry_backfill(1, made.id, [date(2026, 1, 1), date(2027, 1, 1)])
    assert "dates" in caught.value.fields
    other = store.insert_backfill(new_transfer_backfill(days=1, first=date(2026, 1, 3)))
    with pytest.raises(Conflict) as refused:
        store.retry_backfill(1, made.id)
    assert refused.value.other == other
    assert store.get_backfill(1, made.id).status is Status.FAILED
    retried = store.retry_backfill(1, made.id, [date(2026, 1, 1)])
    assert retried.counters.slices_pending == 1
    assert retried.counters.slices_failed == 2
    run_all(store, outcome=done, skip={other.id})
    assert store.get_backfill(1, made.id).status is Status.FAILED


def test_a_retry_before_anything_was_planned_plans_again(store: Store) -> None:
    made = store.insert_backfill(new_sink_backfill())
    claim = store.claim_plan("w", 30)
    assert claim is not None
    assert store.end_claim(claim, TERMINAL, POLICY).status is Status.FAILED
    assert store.retry_backfill(1, made.id).status is Status.CREATED
    again = store.claim_plan("w", 30)
    assert again is not None
    assert again.attempt == claim.attempt + 1
    assert again.failures == 0


def test_ten_years_of_dates_is_held_and_let_go(store: Store) -> None:
    made = store.insert_backfill(new_transfer_backfill(days=3660))
    assert store.find_holder(Kind.TRANSFER, "7", ["2030-06-15"]) == made
    store.cancel_backfill(1, made.id, None)
    store.insert_backfill(new_transfer_backfill(days=3660))


def test_a_spec_is_frozen_with_all_it_says(store: Store) -> None:
    spec = make_spec(
        filter=({"column_name": "c1", "operator": "in", "comparison_value": [1, 2]},),
        message={"consumer": {"id": "x"}},
        start_position="-5",
        max_rows_per_second=100,
    )
    made = store.insert_backfill(new_sink_backfill(spec=spec))
    assert store.get_backfill(1, made.id).spec == spec


def test_the_first_answer_under_a_key_stands(store: Store) -> None:
    first = StoredAnswer(body_hash="h", status=200, body="{}")
    second = StoredAnswer(body_hash="h2", status=422, body="no")
    place = (1, "POST /x", "k")
    assert store.reserve_answer(*place, "h") is None
    store.save_answer(*place, first)
    store.save_answer(*place, second)
    store.release_answer(*place)
    assert store.reserve_answer(*place, "h2") == first
    assert store.reserve_answer(2, "POST /x", "k", "h2") is None
    assert store.reserve_answer(1, "POST /y", "k", "h2") is None


def test_a_reserved_key_is_the_first_ones_until_it_is_released(store: Store) -> None:
    place = (1, "POST /x", "k")
    assert store.reserve_answer(*place, "h") is None
    reserved = StoredAnswer(body_hash="h", status=UNANSWERED, body="")
    assert store.reserve_answer(*place, "h2") == reserved
    store.release_answer(*place)
    assert store.reserve_answer(*place, "h2") is None


def test_of_many_who_reserve_a_key_at_once_one_has_it(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: store.reserve_answer(1, "r", "k", str(n)), range(8)))
    assert found.count(None) == 1
    kept = store.reserve_answer(1, "r", "k", "late")
    assert kept is not None
    assert [each for each in found if each is not None] == [kept] * 7


def test_the_time_in_which_it_was_paused_or_over_is_kept(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(2))
    assert store.claim_pack("w", PackLimits(slots=1, max_slices=1), 30) is not None
    store.pause_backfill(1, made.id)
    _shift(store, made.id, "paused_at", 50)
    _shift(store, made.id, "started_at", 60)
    resumed = store.resume_backfill(1, made.id)
    assert 49 < resumed.idle_seconds < 59
    store.pause_backfill(1, made.id)
    _shift(store, made.id, "paused_at", 3)
    cancelled = store.cancel_backfill(1, made.id, None)
    assert 52 < cancelled.idle_seconds < 62


def test_a_retry_does_not_count_the_time_since_it_failed(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(1))
    run_all(store, failed)
    for column in ("started_at", "ended_at"):
        _shift(store, made.id, column, 1000)
    assert 999 < store.retry_backfill(1, made.id).idle_seconds < 1010


def _shift(store: Store, backfill_id: int, column: str, seconds: int) -> None:
    """Lets it be longer ago."""
    query = f"UPDATE backfills SET {column} = {column} - :by WHERE id = :id"
    with store._backend.write() as connection:  # type: ignore[attr-defined]
        connection.execute(sa.text(query), {"by": seconds * 1_000_000, "id": backfill_id})
