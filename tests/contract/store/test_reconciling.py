"""Slices whose end nobody heard of, and what their sink says of them later."""

import dataclasses

import pytest

from refill.domain.backfill import Backfill, CountedBackfill, Status
from refill.domain.slice import Receipt, Reject, SliceState
from refill.store.port import Store
from refill.store.records import Pack, PackLimits, Unsure
from tests.contract.store.factories import (
    AT_ONCE,
    done,
    finish,
    key_slices,
    make_database,
    make_sink,
    make_spec,
    new_sink_backfill,
    plan,
    stumbled,
    unstarted,
)

ALL = PackLimits(slots=1)
GONE = -1.0  # a lease that ran out before it began
KAFKA = make_spec(sink_type="kafka", sink_options={})


def planned(store: Store, slices: int = 1, seals: bool = False) -> CountedBackfill:
    return plan(store, new_sink_backfill(spec=KAFKA, seals=seals), key_slices(slices))


def claim(store: Store, lease: float = 30) -> Pack:
    pack = store.claim_pack("w", ALL, lease)
    assert pack is not None
    return pack


def lose(store: Store) -> Pack:
    """Claimed by a worker that is never heard of again."""
    pack = claim(store, GONE)
    assert store.sweep(AT_ONCE).leases_lost == len(pack.slices)
    return pack


def unsure(store: Store) -> list[Unsure]:
    return list(store.list_unsure({"kafka"}))


def test_a_slice_whose_worker_was_lost_is_unsure_until_it_runs_again(store: Store) -> None:
    made = planned(store, 2)
    assert unsure(store) == []
    lost = lose(store)
    (found,) = unsure(store)
    assert found.backfill.id == made.id
    assert found.backfill.spec == KAFKA
    assert [(each.slice.id, each.slice.attempt, each.fence) for each in found.slices] == [
        (each.slice.id, each.slice.attempt, each.fence) for each in lost.slices
    ]
    assert store.list_unsure({"files"}) == ()
    claim(store)
    assert unsure(store) == []


def test_what_was_handed_back_is_unsure_only_while_the_backfill_is_paused(store: Store) -> None:
    made = planned(store, 4)
    pack = claim(store)
    finish(store, pack, unstarted)
    assert unsure(store) == []
    store.pause_backfill(1, made.id)
    (found,) = unsure(store)
    assert {each.slice.id for each in found.slices} == {each.slice.id for each in pack.slices}


def test_a_slice_that_stumbled_is_unsure_too(store: Store) -> None:
    """Its commit may have gone through though the answer was lost."""
    planned(store)
    pack = claim(store)
    finish(store, pack, stumbled)
    (found,) = unsure(store)
    assert found.slices[0].slice.error_code == "source_unavailable"


@pytest.mark.parametrize("paused", [False, True])
def test_the_last_slice_found_delivered_ends_the_backfill(store: Store, paused: bool) -> None:
    made = planned(store)
    lost = lose(store)
    if paused:
        store.pause_backfill(1, made.id)
    reject = Reject(key=("1",), reason="too large")
    said = done(lost.slices[0]).model_copy(update={"rows_rejected": 1, "rejects": (reject,)})
    finished = store.record_delivered(made.id, [said])
    assert finished.accepted == {said.slice_id}
    assert finished.status is Status.COMPLETED
    over = store.get_backfill(1, made.id)
    assert (over.status, over.paused_at) == (Status.COMPLETED, None)
    assert (over.counters.rows_delivered, over.counters.rows_rejected) == (10, 1)
    part = store.list_slices(made.id).items[0]
    assert (part.state, part.error, part.error_code) == (SliceState.COMPLETED, None, None)
    assert part.started_at is not None
    assert [found for _, found in store.list_rejects(made.id).items] == [reject]


def test_a_paused_backfill_with_nothing_left_is_sealed(store: Store) -> None:
    made = planned(store, seals=True)
    lost = lose(store)
    store.pause_backfill(1, made.id)
    assert store.claim_seal("w", 30) is None
    assert store.record_delivered(made.id, [done(lost.slices[0])]).sealable
    seal = store.claim_seal("w", 30)
    assert seal is not None
    assert store.end_claim(seal, None, AT_ONCE).status is Status.COMPLETED


def test_the_others_stay_pending(store: Store) -> None:
    made = planned(store, 4)
    lost = lose(store)
    store.pause_backfill(1, made.id)
    assert store.record_delivered(made.id, [done(lost.slices[0])]).status is Status.PAUSED
    counters = store.get_backfill(1, made.id).counters
    assert (counters.slices_completed, counters.slices_pending) == (1, 3)


def refused(store: Store, made: Backfill, said: Receipt) -> None:
    before = store.list_slices(made.id).items
    finished = store.record_delivered(made.id, [said])
    assert finished.superseded == {said.slice_id}
    assert not finished.accepted
    assert store.list_slices(made.id).items == before


def test_what_runs_again_is_left_to_its_new_attempt(store: Store) -> None:
    made = planned(store)
    lost = lose(store)
    again = claim(store)
    refused(store, made, done(lost.slices[0]))
    refused(store, made, done(again.slices[0]))
    finish(store, again, unstarted)
    refused(store, made, done(lost.slices[0]))  # pending, but of another attempt


def test_what_was_cancelled_or_completed_meanwhile_stays_so(store: Store) -> None:
    made = planned(store)
    lost = lose(store)
    said = done(lost.slices[0])
    assert store.record_delivered(made.id, [said]).status is Status.COMPLETED
    refused(store, made, said)
    other = planned(store)
    lost = lose(store)
    store.cancel_backfill(1, other.id, None)
    refused(store, other, done(lost.slices[0]))
    assert unsure(store) == []


def test_what_was_handed_back_is_unsure_while_its_sink_waits(store: Store) -> None:
    database = store.insert_database(make_database())
    sink = store.insert_sink(make_sink(database.id))
    made = plan(store, new_sink_backfill(spec=KAFKA, pipeline_id=sink.id), key_slices(2))
    pack = claim(store)
    finish(store, pack, unstarted)
    assert unsure(store) == []
    store.update_sink(dataclasses.replace(sink, status="paused"))
    (found,) = unsure(store)
    assert found.backfill.id == made.id
    assert {each.slice.id for each in found.slices} == {each.slice.id for each in pack.slices}
