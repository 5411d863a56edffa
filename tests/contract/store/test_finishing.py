"""The end of slices, and of backfills with them."""

import dataclasses
from typing import Any

import pytest

from refill.domain.backfill import Status
from refill.domain.retry import RetryPolicy
from refill.domain.slice import Outcome, Reject, SliceState
from refill.store.port import Store
from refill.store.records import Finished, Pack, PackLimits
from tests.contract.store.factories import (
    AT_ONCE,
    FIRST,
    TERMINAL,
    Outcomes,
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
    receipt,
    run_all,
    stumbled,
    unstarted,
)

ONE = PackLimits(max_slices=1)
ALL = PackLimits(slots=1)
RAN: dict[str, Any] = {
    "rows_read": 9,
    "rows_delivered": 6,
    "rows_filtered": 2,
    "rows_rejected": 1,
    "bytes_written": 700,
    "seconds": 0.5,
}
STUMBLED = {"failures": 1, "error": "it went away", "error_code": "source_unavailable"}
BROKE = {"failures": 1, "error": "it broke", "error_code": "source_refused"}


def claim(store: Store, limits: PackLimits = ALL) -> Pack:
    pack = store.claim_pack("w", limits, 30)
    assert pack is not None
    return pack


def claim_all(store: Store) -> list[Pack]:
    packs = []
    while (pack := store.claim_pack("w", ALL, 30)) is not None:
        packs.append(pack)
    return packs


@pytest.mark.parametrize(("retries", "attempts"), [(0, 1), (3, 4), (None, 2)])
def test_a_sink_says_how_often_a_slice_is_tried_again(
    store: Store, retries: int | None, attempts: int
) -> None:
    """None: as the worker is set, which is to two failures here."""
    spec = make_spec(max_retry_count=retries)
    made = plan(store, new_sink_backfill(spec=spec), key_slices(1))
    run_all(store, stumbled)
    over = store.get_backfill(1, made.id)
    assert over.status is Status.FAILED
    (part,) = store.list_slices(made.id).items
    assert (part.attempt, part.failures) == (attempts, attempts)


def test_the_last_slice_ends_the_backfill_with_its_counters(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(4))
    packs = claim_all(store)
    for pack in packs[:-1]:
        assert finish(store, pack, done).status is Status.RUNNING
    last = packs[-1]
    finished = finish(store, last, done)
    accepted = frozenset(claimed.slice.id for claimed in last.slices)
    assert finished == Finished(
        accepted=accepted, superseded=frozenset(), status=Status.COMPLETED, sealable=False
    )
    over = store.get_backfill(1, made.id)
    assert over.status is Status.COMPLETED
    assert over.completed_at == over.ended_at is not None
    assert (over.counters.slices_completed, over.counters.rows_read) == (4, 40)
    parts = store.list_slices(made.id).items
    assert {(p.state, p.rows_delivered, p.seconds, p.lease_until) for p in parts} == {
        (SliceState.COMPLETED, 10, 0.5, None)
    }


@pytest.mark.parametrize(
    ("outcome", "changes"),
    [
        (done, {"state": SliceState.COMPLETED, **RAN}),
        (failed, {"state": SliceState.FAILED, **BROKE, **RAN}),
    ],
)
def test_a_slice_that_has_ended_says_who_ran_it_and_what_it_did(
    store: Store, outcome: Outcomes, changes: dict[str, Any]
) -> None:
    made = plan(store, new_sink_backfill(), key_slices(1))
    pack = claim(store)
    finish(store, pack, lambda c: outcome(c).model_copy(update=RAN))
    (part,) = store.list_slices(made.id).items
    ended = {"lease_until": None, "ended_at": store.get_backfill(1, made.id).ended_at}
    assert part == dataclasses.replace(pack.slices[0].slice, **ended, **changes)


@pytest.mark.parametrize(("outcome", "changes"), [(stumbled, STUMBLED), (unstarted, {})])
def test_a_slice_that_goes_back_is_as_it_was_planned_but_for_what_went_wrong(
    store: Store, outcome: Outcomes, changes: dict[str, Any]
) -> None:
    made = plan(store, new_sink_backfill(), key_slices(1))
    (planned,) = store.list_slices(made.id).items
    finish(store, claim(store), lambda c: outcome(c).model_copy(update=RAN))
    (part,) = store.list_slices(made.id).items
    assert part == dataclasses.replace(planned, attempt=1, **changes)


@pytest.mark.parametrize(
    ("outcome", "changes"),
    [
        (done, {"state": SliceState.COMPLETED, **RAN}),
        (failed, {"state": SliceState.FAILED, **BROKE, **RAN}),
        (stumbled, {"state": SliceState.CANCELLED, **STUMBLED}),
        (unstarted, {"state": SliceState.CANCELLED}),
    ],
)
def test_what_ran_when_its_backfill_was_cancelled_ends_as_it_did_or_is_dropped(
    store: Store, outcome: Outcomes, changes: dict[str, Any]
) -> None:
    made = plan(store, new_sink_backfill(), key_slices(1))
    pack = claim(store)
    store.cancel_backfill(1, made.id, None)
    last_try = RetryPolicy(max_failures=1)
    finish(store, pack, lambda c: outcome(c).model_copy(update=RAN), last_try)
    (part,) = store.list_slices(made.id).items
    ended = {"lease_until": None, "ended_at": store.get_backfill(1, made.id).updated_at}
    assert part == dataclasses.replace(pack.slices[0].slice, **ended, **changes)


def test_each_slice_of_a_pack_ends_in_its_own_way(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(8))
    ways: list[Outcomes] = [unstarted, done, failed, stumbled]
    pack = claim(store)
    finish(store, pack, lambda c: ways[c.slice.index](c))
    parts = store.list_slices(made.id).items[:4]
    assert [(p.state, p.error_code, p.pack) for p in parts] == [
        (SliceState.PENDING, None, None),
        (SliceState.COMPLETED, None, pack.id),
        (SliceState.FAILED, "source_refused", pack.id),
        (SliceState.PENDING, "source_unavailable", None),
    ]


def test_a_backfill_ends_with_its_own_last_slice(store: Store) -> None:
    plan(store, new_sink_backfill(pipeline_id="a"), key_slices(1, target="a"))
    plan(store, new_sink_backfill(pipeline_id="b"), key_slices(2, target="b"))
    assert finish(store, claim(store), done).status is Status.COMPLETED
    assert finish(store, claim(store), done).status is Status.RUNNING


def test_a_failure_without_a_reason_is_tried_again_and_says_so(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(1))
    finish(store, claim(store), lambda c: failed(c, fault=None))
    (part,) = store.list_slices(made.id).items
    assert (part.state, part.failures, part.error_code) == (SliceState.PENDING, 1, "error")
    assert "no reason" in (part.error or "")


def test_of_two_words_about_a_slice_the_first_stands(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(1))
    part = claim(store).slices[0]
    finished = store.finish_slices(made.id, [done(part), failed(part)], AT_ONCE)
    assert finished.status is Status.COMPLETED


def test_a_backfill_names_the_first_of_its_errors_whichever_came_first(store: Store) -> None:
    plan(store, new_sink_backfill(pipeline_id="another"), key_slices(1, target="another"))
    run_all(store, failed)
    made = plan(store, new_sink_backfill(), key_slices(2))
    packs = [claim(store, ONE), claim(store, ONE)]
    for number, pack in reversed(list(enumerate(packs))):
        fault = TERMINAL.model_copy(update={"message": f"of {number}"})
        store.finish_slices(made.id, [failed(pack.slices[0], fault=fault)], AT_ONCE)
    assert store.get_backfill(1, made.id).error == "2 of 2 slices failed; first: of 0"


def test_a_backfill_says_so_when_the_first_of_its_errors_says_nothing(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(1))
    silent = TERMINAL.model_copy(update={"message": ""})
    run_all(store, lambda c: failed(c, fault=silent))
    assert "gave no reason" in (store.get_backfill(1, made.id).error or "")


def test_a_finish_moves_the_time_of_its_backfill(store: Store) -> None:
    made = plan(store, new_sink_backfill(seals=True), key_slices(2))
    for pack in [claim(store, ONE), claim(store, ONE)]:
        before = store.get_backfill(1, made.id).updated_at
        finish(store, pack, done)
        assert store.get_backfill(1, made.id).updated_at > before


def test_what_is_not_all_completed_cannot_be_sealed(store: Store) -> None:
    def ends(outcome: Outcomes, cancelled: bool = False) -> list[bool]:
        made = plan(store, new_sink_backfill(seals=True), key_slices(2))
        packs = [claim(store, ONE), claim(store, ONE)]
        if cancelled:
            store.cancel_backfill(1, made.id, None)
        return [finish(store, pack, outcome).sealable for pack in packs]

    assert ends(done, cancelled=True) == [False, False]
    assert ends(failed) == [False, False]
    assert ends(done) == [False, True]


def test_a_zombies_receipt_changes_nothing(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(1))
    zombie = claim(store)
    store.release_slices([(zombie.slices[0].slice.id, 1)])
    pack = claim(store)
    before = store.list_slices(made.id).items
    finished = finish(store, zombie, done)
    assert finished.superseded == {zombie.slices[0].slice.id}
    assert not finished.accepted
    assert finished.status is Status.RUNNING
    assert store.list_slices(made.id).items == before
    assert finish(store, pack, done).status is Status.COMPLETED
    # said twice: the first word stands
    again = finish(store, pack, failed)
    assert again.superseded
    assert (again.status, again.sealable) == (Status.COMPLETED, False)


def test_a_receipt_for_another_backfills_slice_is_superseded(store: Store) -> None:
    first = plan(store, new_sink_backfill(pipeline_id="a"), key_slices(1, target="a"))
    second = plan(store, new_sink_backfill(pipeline_id="b"), key_slices(1, target="b"))
    packs = {pack.backfill.id: pack for pack in (claim(store), claim(store))}
    finished = store.finish_slices(first.id, [done(packs[second.id].slices[0])], AT_ONCE)
    assert not finished.accepted
    assert store.list_slices(second.id).items[0].state is SliceState.RUNNING


def test_a_slice_that_stumbles_is_tried_again_until_its_budget_is_gone(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(1))
    finish(store, claim(store), stumbled)
    part = store.list_slices(made.id).items[0]
    assert (part.state, part.failures, part.attempt) == (SliceState.PENDING, 1, 1)
    assert part.error == "it went away"
    assert finish(store, claim(store), stumbled).status is Status.FAILED
    part = store.list_slices(made.id).items[0]
    assert (part.state, part.failures, part.error_code) == (
        SliceState.FAILED,
        2,
        "source_unavailable",
    )


def test_rows_of_an_attempt_that_failed_are_not_counted(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(1))
    pack = claim(store)
    half = stumbled(pack.slices[0]).model_copy(update={"rows_read": 5, "rows_delivered": 5})
    store.finish_slices(made.id, [half], AT_ONCE)
    assert store.get_backfill(1, made.id).counters.rows_read == 0
    run_all(store)
    over = store.get_backfill(1, made.id)
    assert over.counters.rows_read == 10
    assert store.list_slices(made.id).items[0].error is None


def test_one_slice_that_always_fails_does_not_stop_the_others(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(5))
    run_all(store, lambda c: failed(c) if c.slice.index == 2 else done(c))
    over = store.get_backfill(1, made.id)
    assert over.status is Status.FAILED
    assert over.error == "1 of 5 slices failed; first: it broke"
    assert (over.counters.slices_completed, over.counters.slices_failed) == (4, 1)
    assert over.counters.rows_delivered == 40


def test_what_was_not_started_goes_back_without_a_failure(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(2))
    finish(store, claim(store), unstarted)
    parts = store.list_slices(made.id).items
    assert {(p.state, p.failures, p.pack) for p in parts} == {(SliceState.PENDING, 0, None)}


def test_what_calls_itself_overtaken_while_it_holds_the_slice_does_not_go_round_for_ever(
    store: Store,
) -> None:
    made = plan(store, new_sink_backfill(), key_slices(1))
    finish(store, claim(store), lambda c: receipt(c, Outcome.SUPERSEDED))
    parts = store.list_slices(made.id).items
    assert {(p.state, p.failures) for p in parts} == {(SliceState.PENDING, 1)}
    run_all(store, lambda c: receipt(c, Outcome.SUPERSEDED))
    over = store.get_backfill(1, made.id)
    assert (over.status, over.error_code) == (Status.FAILED, "superseded")


def test_a_paused_backfill_whose_last_slice_finishes_ends(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(1))
    pack = claim(store)
    store.pause_backfill(1, made.id)
    assert finish(store, pack, done).status is Status.COMPLETED
    over = store.get_backfill(1, made.id)
    assert over.status is Status.COMPLETED
    assert over.paused_at is None


def test_a_retry_after_that_is_waited_for(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(1))
    pack = claim(store)
    asked = stumbled(pack.slices[0])
    assert asked.fault is not None
    fault = asked.fault.model_copy(update={"retry_after_seconds": 600.0})
    store.finish_slices(made.id, [asked.model_copy(update={"fault": fault})], RetryPolicy())
    part = store.list_slices(made.id).items[0]
    assert part.not_before is not None
    assert (part.not_before - store.now()).total_seconds() > 500


def test_rejects_are_kept_with_their_slice_and_replaced_by_its_next_attempt(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(2))
    first = Reject(key=("1", None), reason="too_large", detail="5 MB")
    second = Reject(key=("2",), reason="bad")
    pack = claim(store, ONE)
    store.finish_slices(
        made.id, [stumbled(pack.slices[0]).model_copy(update={"rejects": (second,)})], AT_ONCE
    )
    assert [r for _, r in store.list_rejects(made.id).items] == [second]
    run_all(
        store,
        lambda c: done(c).model_copy(update={"rejects": (first, second), "rows_rejected": 2}),
    )
    page = store.list_rejects(made.id, limit=3)
    assert [(part.index, reject) for part, reject in page.items] == [
        (0, first),
        (0, second),
        (1, first),
    ]
    rest = store.list_rejects(made.id, limit=3, cursor=page.next_cursor)
    assert [(part.index, reject) for part, reject in rest.items] == [(1, second)]
    assert rest.next_cursor is None
    assert store.get_backfill(1, made.id).counters.rows_rejected == 4


def test_what_was_handed_back_keeps_the_rejects_of_the_attempt_before(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(1))
    reject = Reject(key=("1",), reason="bad")
    finish(store, claim(store), lambda c: stumbled(c).model_copy(update={"rejects": (reject,)}))
    finish(store, claim(store), unstarted)
    assert [found for _, found in store.list_rejects(made.id).items] == [reject]


def test_counters_are_frozen_when_it_ends(store: Store) -> None:
    made = plan(store, new_transfer_backfill(days=2), dated_slices(dates_from(FIRST, 2)))
    run_all(store)
    with store._backend.write() as connection:  # type: ignore[attr-defined]
        connection.exec_driver_sql("UPDATE slices SET rows_read = 0")
    assert store.get_backfill(1, made.id).counters.rows_read == 20
    assert store.list_backfills(1).items[0].counters.rows_read == 20


def test_counters_in_lists_are_those_of_each(store: Store) -> None:
    first = plan(store, new_sink_backfill(pipeline_id="a"), key_slices(3, target="a"))
    second = plan(store, new_sink_backfill(pipeline_id="b"), key_slices(5, target="b"))
    third = store.insert_backfill(new_sink_backfill(pipeline_id="c"))
    claim(store, ONE)
    listed = {b.id: b for b in store.list_backfills(1).items}
    assert listed[first.id] == store.get_backfill(1, first.id)
    assert listed[first.id].counters.slices_pending == 2
    assert listed[second.id].counters.slices_pending == 5
    assert listed[third.id].counters.slices_total == 0


@pytest.mark.parametrize("outcome", [done, failed, stumbled])
def test_an_empty_or_repeated_word_is_harmless(store: Store, outcome: object) -> None:
    made = plan(store, new_sink_backfill(), key_slices(2))
    pack = claim(store, ONE)
    assert store.finish_slices(made.id, [], AT_ONCE).status is Status.RUNNING
    twice = [outcome(pack.slices[0]), outcome(pack.slices[0])]  # type: ignore[operator]
    assert len(store.finish_slices(made.id, twice, AT_ONCE).accepted) == 1
    assert store.list_slices(made.id).items[0].failures <= 1


def test_what_ran_at_two_deaths_of_an_engine_is_claimed_alone_and_then_fails(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(2))
    limits = PackLimits(slots=1)
    for _ in range(2):
        assert not store.any_quarantined()
        held = []
        while pack := store.claim_pack("w", limits, 30):
            held += [(part.slice.id, part.slice.attempt) for part in pack.slices]
        assert store.suspect_slices(held, RetryPolicy()) == 2
    assert store.any_quarantined()
    assert store.claim_pack("w", limits, 30) is None
    for _ in range(2):
        pack = store.claim_pack("w", PackLimits(slots=1, alone=True), 30)
        assert pack is not None
        assert pack.alone
        assert len(pack.slices) == 1
        store.suspect_slices(
            [(pack.slices[0].slice.id, pack.slices[0].slice.attempt)], RetryPolicy()
        )
    found = store.list_slices(made.id).items
    assert {(part.state, part.error_code) for part in found} == {
        (SliceState.FAILED, "engine_killed")
    }
    store.retry_backfill(1, made.id)
    assert not store.any_quarantined()
