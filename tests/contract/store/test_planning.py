"""Claims on a backfill as a whole: planning it, sealing it."""

from datetime import UTC, datetime

import pytest

from refill.domain.backfill import Origin, Status
from refill.domain.errors import NotFound, Superseded
from refill.domain.retry import RetryPolicy
from refill.domain.slice import (
    Dated,
    KeyRange,
    NativeExtent,
    NullKeys,
    Outcome,
    Receipt,
    SliceState,
    Whole,
)
from refill.store.port import Store
from refill.store.records import BackfillClaim, NewBackfill, PackLimits, PlannedSlice
from tests.contract.store.factories import (
    AT_ONCE,
    FIRST,
    TERMINAL,
    TRANSIENT,
    dated_slices,
    dates_from,
    done,
    failed,
    key_slices,
    make_spec,
    new_sink_backfill,
    new_transfer_backfill,
    plan,
    run_all,
)

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
FAR_AHEAD = datetime(2100, 1, 1, tzinfo=UTC)


def claim_plan(store: Store) -> BackfillClaim:
    claim = store.claim_plan("w", 30)
    assert claim is not None
    return claim


def test_a_created_backfill_is_claimed_once(store: Store) -> None:
    made = store.insert_backfill(new_sink_backfill())
    claim = claim_plan(store)
    assert (claim.backfill.id, claim.attempt, claim.failures) == (made.id, 1, 0)
    assert claim.backfill.updated_at == store.get_backfill(1, made.id).updated_at
    assert store.claim_plan("other", 30) is None


def test_schedules_are_planned_before_history_and_older_before_newer(store: Store) -> None:
    first = store.insert_backfill(new_sink_backfill(pipeline_id="a"))
    second = store.insert_backfill(new_sink_backfill(pipeline_id="b"))
    recurring = store.insert_backfill(new_transfer_backfill(origin=Origin.SCHEDULE, holds=()))
    order = [claim_plan(store).backfill.id for _ in range(3)]
    assert order == [recurring.id, first.id, second.id]


def test_a_plan_is_stored_whole_and_in_order(store: Store) -> None:
    store.insert_backfill(new_sink_backfill())
    extents = [
        KeyRange(lower=("-5",), upper=("3",), lower_inclusive=True),
        KeyRange(lower=("3",)),
        NullKeys(),
        NativeExtent(label="pages", lower="t (0,0)", same_order=True, native={"first_page": 0}),
        Dated(date=FIRST),
        Whole(),
    ]
    planned = [PlannedSlice(extent=e, target="t", rows_estimated=7) for e in extents]
    backfill = store.save_plan(claim_plan(store), iter(planned), rows_estimated=42)
    assert backfill.status is Status.SCHEDULED
    assert backfill.planned
    assert backfill.rows_estimated == 42
    assert backfill.counters.slices_total == backfill.counters.slices_pending == 6
    slices = store.list_slices(backfill.id).items
    assert [part.extent for part in slices] == extents
    assert [part.index for part in slices] == list(range(6))
    assert {part.rows_estimated for part in slices} == {7}


def test_a_plan_may_freeze_what_was_not_known_before(store: Store) -> None:
    store.insert_backfill(new_sink_backfill())
    spec = make_spec(sort_columns=("c0",))
    backfill = store.save_plan(claim_plan(store), key_slices(1), rows_estimated=0, spec=spec)
    assert backfill.spec == spec == store.get_backfill(1, backfill.id).spec


def test_a_plan_without_slices_is_done(store: Store) -> None:
    store.insert_backfill(new_sink_backfill())
    backfill = store.save_plan(claim_plan(store), [], rows_estimated=0)
    assert backfill.status is Status.COMPLETED
    assert backfill.planned
    assert backfill.started_at == backfill.completed_at is not None
    store.insert_backfill(new_sink_backfill())


def test_a_plan_without_slices_is_still_sealed(store: Store) -> None:
    store.insert_backfill(new_sink_backfill(seals=True))
    backfill = store.save_plan(claim_plan(store), [], rows_estimated=0)
    assert backfill.status is Status.SCHEDULED
    claim = store.claim_seal("w", 30)
    assert claim is not None
    assert store.end_claim(claim, None, AT_ONCE).status is Status.COMPLETED


def test_a_backfill_paused_while_it_is_planned_stays_paused_and_is_planned(store: Store) -> None:
    made = store.insert_backfill(new_sink_backfill())
    claim = claim_plan(store)
    store.pause_backfill(1, made.id)
    planned = store.save_plan(claim, key_slices(2), rows_estimated=0)
    assert planned.status is Status.PAUSED
    assert planned.planned
    assert store.resume_backfill(1, made.id).status is Status.SCHEDULED


def test_a_backfill_cancelled_while_it_is_planned_is_not_planned(store: Store) -> None:
    made = store.insert_backfill(new_sink_backfill())
    claim = claim_plan(store)
    store.cancel_backfill(1, made.id, None)
    with pytest.raises(Superseded):
        store.save_plan(claim, key_slices(2), rows_estimated=0)
    with pytest.raises(Superseded):
        store.end_claim(claim, TERMINAL, AT_ONCE)
    assert store.list_slices(made.id).items == ()


def test_a_plan_is_saved_once(store: Store) -> None:
    store.insert_backfill(new_sink_backfill())
    claim = claim_plan(store)
    store.save_plan(claim, key_slices(2), rows_estimated=0)
    with pytest.raises(Superseded):
        store.save_plan(claim, key_slices(2), rows_estimated=0)
    assert len(store.list_slices(claim.backfill.id).items) == 2


def test_a_plan_that_stumbles_is_left_for_later_and_then_given_up(store: Store) -> None:
    store.insert_backfill(new_sink_backfill())
    first = claim_plan(store)
    assert store.end_claim(first, TRANSIENT, AT_ONCE).status is Status.CREATED
    second = claim_plan(store)
    assert (second.attempt, second.failures) == (2, 1)
    with pytest.raises(Superseded):
        store.end_claim(first, TRANSIENT, AT_ONCE)
    over = store.end_claim(second, TRANSIENT, AT_ONCE)
    assert over.status is Status.FAILED
    assert (over.error, over.error_code) == ("it went away", "source_unavailable")
    store.insert_backfill(new_sink_backfill())


def test_a_plan_waits_for_as_long_as_it_was_told_to(store: Store) -> None:
    store.insert_backfill(new_sink_backfill())
    policy = RetryPolicy(base_seconds=100)
    store.end_claim(claim_plan(store), TRANSIENT, policy)
    assert store.claim_plan("w", 30) is None


def test_a_plan_that_cannot_succeed_fails_at_once(store: Store) -> None:
    store.insert_backfill(new_sink_backfill())
    over = store.end_claim(claim_plan(store), TERMINAL, RetryPolicy())
    assert over.status is Status.FAILED
    assert over.error == "it broke"


def test_dates_that_could_not_be_planned_are_failed_runs_until_they_are(store: Store) -> None:
    made = store.insert_backfill(new_transfer_backfill(days=3, origin=Origin.SCHEDULE))
    over = store.end_claim(claim_plan(store), TERMINAL, AT_ONCE)
    assert over.status is Status.FAILED
    assert (over.counters.slices_total, over.counters.slices_failed) == (3, 3)
    runs = store.list_runs(1, 7, start=LONG_AGO, end=FAR_AHEAD, issues_only=True)
    assert {(run.state, run.error, run.error_code) for run, _ in runs} == {
        (SliceState.FAILED, TERMINAL.message, TERMINAL.code)
    }
    assert {(run.attempt, run.failures, run.ended_at) for run, _ in runs} == {(0, 1, over.ended_at)}
    dates = frozenset(dates_from(FIRST, 3))
    assert store.failed_dates(7) == dates

    assert store.retry_backfill(1, made.id).status is Status.CREATED
    assert store.list_slices(made.id).items == ()
    store.save_plan(claim_plan(store), dated_slices(sorted(dates)), rows_estimated=0)
    run_all(store)
    again = store.get_backfill(1, made.id)
    assert again.status is Status.COMPLETED
    assert again.counters.slices_total == 3
    assert store.failed_dates(7) == frozenset()


def test_a_table_that_could_not_be_planned_has_no_slices(store: Store) -> None:
    made = store.insert_backfill(new_sink_backfill())
    store.end_claim(claim_plan(store), TERMINAL, AT_ONCE)
    assert store.list_slices(made.id).items == ()


def test_a_claim_to_plan_can_be_handed_back(store: Store) -> None:
    store.insert_backfill(new_sink_backfill())
    assert store.end_claim(claim_plan(store), None, AT_ONCE).status is Status.CREATED
    again = claim_plan(store)
    assert again.failures == 0


def test_a_backfill_that_seals_ends_with_the_seal(store: Store) -> None:
    made = plan(store, new_sink_backfill(seals=True), key_slices(2))
    assert store.claim_seal("w", 30) is None
    run_all(store, outcome=done)
    assert store.get_backfill(1, made.id).status is Status.RUNNING
    claim = store.claim_seal("w", 30)
    assert claim is not None
    assert claim.backfill.id == made.id
    assert store.claim_seal("other", 30) is None
    over = store.end_claim(claim, None, AT_ONCE)
    assert over.status is Status.COMPLETED
    assert over.counters.rows_delivered == 20
    with pytest.raises(Superseded):
        store.end_claim(claim, None, AT_ONCE)


def test_the_last_finish_says_that_the_backfill_can_be_sealed(store: Store) -> None:
    plan(store, new_sink_backfill(seals=True), key_slices(1))
    pack = store.claim_pack("w", PackLimits(), 30)
    assert pack is not None
    finished = store.finish_slices(pack.backfill.id, [done(pack.slices[0])], AT_ONCE)
    assert finished.sealable
    assert finished.status is Status.RUNNING


def test_a_backfill_with_failed_slices_is_not_sealed(store: Store) -> None:
    made = plan(store, new_sink_backfill(seals=True), key_slices(2))
    run_all(store, outcome=failed)
    assert store.get_backfill(1, made.id).status is Status.FAILED
    assert store.claim_seal("w", 30) is None


def test_what_was_lost_before_the_seal_goes_back_and_is_sealed_later(store: Store) -> None:
    made = plan(store, new_sink_backfill(seals=True), key_slices(2))
    run_all(store, outcome=done)
    claim = store.claim_seal("w", 30)
    assert claim is not None
    first = store.list_slices(made.id).items[0]
    lost = Receipt(
        slice_id=first.id, attempt=first.attempt, outcome=Outcome.FAILED, fault=TRANSIENT
    )
    now = store.take_back(claim, [lost], AT_ONCE)
    assert (now.status, now.counters.slices_pending) == (Status.RUNNING, 1)
    assert (now.counters.slices_completed, now.counters.rows_delivered) == (1, 10)
    with pytest.raises(Superseded):
        store.end_claim(claim, None, AT_ONCE)
    assert store.claim_seal("w", 30) is None
    run_all(store, outcome=done)
    again = store.claim_seal("w", 30)
    assert again is not None
    assert store.end_claim(again, None, AT_ONCE).counters.rows_delivered == 20


def test_an_older_attempt_of_a_slice_is_not_taken_back(store: Store) -> None:
    made = plan(store, new_sink_backfill(seals=True), key_slices(1))
    run_all(store, outcome=done)
    claim = store.claim_seal("w", 30)
    assert claim is not None
    (part,) = store.list_slices(made.id).items
    older = Receipt(
        slice_id=part.id, attempt=part.attempt - 1, outcome=Outcome.FAILED, fault=TRANSIENT
    )
    assert store.take_back(claim, [older], AT_ONCE).counters.slices_completed == 1


def test_what_goes_wrong_with_a_plan_does_not_count_against_the_seal(store: Store) -> None:
    store.insert_backfill(new_sink_backfill(seals=True))
    store.end_claim(claim_plan(store), TRANSIENT, AT_ONCE)
    store.save_plan(claim_plan(store), key_slices(1), rows_estimated=0)
    run_all(store)
    claim = store.claim_seal("w", 30)
    assert claim is not None
    assert claim.failures == 0


def test_only_what_is_planned_and_going_on_and_has_a_seal_is_sealed(store: Store) -> None:
    def ended(name: str, seals: bool = True) -> int:
        new = new_sink_backfill(pipeline_id=name, seals=seals)
        made = plan(store, new, key_slices(1, target=name))
        run_all(store)
        return made.id

    unplanned = store.insert_backfill(new_sink_backfill(pipeline_id="unplanned", seals=True))
    store.pause_backfill(1, unplanned.id)
    ended("without a seal", seals=False)
    for fault in (None, TERMINAL):
        ended(f"sealed with {fault}")
        claim = store.claim_seal("w", 30)
        assert claim is not None
        store.end_claim(claim, fault, AT_ONCE)
    store.cancel_backfill(1, ended("cancelled"), None)
    assert store.claim_seal("w", 30) is None
    going_on = ended("going on")
    plan(store, new_sink_backfill(pipeline_id="pending", seals=True), key_slices(1))
    claim = store.claim_seal("w", 30)
    assert claim is not None
    assert claim.backfill.id == going_on
    assert store.claim_seal("w", 30) is None


@pytest.mark.parametrize(
    ("new", "slices"),
    [
        (new_sink_backfill(seals=True), key_slices(1)),
        (new_transfer_backfill(days=1, seals=True), dated_slices([FIRST])),
    ],
    ids=["sink", "transfer"],
)
def test_a_seal_that_failed_is_sealed_again_on_retry(
    store: Store, new: NewBackfill, slices: list[PlannedSlice]
) -> None:
    made = plan(store, new, slices)
    run_all(store, outcome=done)
    claim = store.claim_seal("w", 30)
    assert claim is not None
    over = store.end_claim(claim, TERMINAL, AT_ONCE)
    assert (over.status, over.counters.slices_completed) == (Status.FAILED, 1)
    assert store.retry_backfill(1, made.id).status is Status.SCHEDULED
    again = store.claim_seal("w", 30)
    assert again is not None
    assert store.end_claim(again, None, AT_ONCE).status is Status.COMPLETED


def test_heartbeats_keep_a_claim_and_tell_when_it_is_lost(store: Store) -> None:
    made = store.insert_backfill(new_sink_backfill())
    claim = claim_plan(store)
    held = [(made.id, claim.attempt)]
    assert store.heartbeat("w", [], held, 30) == (frozenset(), frozenset())
    assert store.heartbeat("w", [], [(made.id, 99)], 30) == (frozenset(), {made.id})
    store.cancel_backfill(1, made.id, None)
    assert store.heartbeat("w", [], held, 30) == (frozenset(), {made.id})


def test_dates_of_two_backfills_share_their_targets(store: Store) -> None:
    plan(store, new_transfer_backfill(days=1), dated_slices([FIRST]))
    run_all(store)
    plan(store, new_transfer_backfill(days=1), dated_slices([FIRST]))
    pack = store.claim_pack("w", PackLimits(), 30)
    assert pack is not None
    assert pack.slices[0].fence == 2


def test_nothing_is_known_of_a_backfill_that_is_not_there(store: Store) -> None:
    with pytest.raises(NotFound):
        store.finish_slices(10**9, [], AT_ONCE)
