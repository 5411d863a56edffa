"""Claims of packs: what is taken, in which order, and what is passed over."""

import dataclasses

import pytest

from refill.domain.backfill import Origin, Status
from refill.domain.retry import RetryPolicy
from refill.domain.slice import SliceState
from refill.store.port import Store
from refill.store.records import Pack, PackLimits
from tests.contract.store.conftest import Between
from tests.contract.store.factories import (
    AT_ONCE,
    FIRST,
    dated_slices,
    dates_from,
    done,
    finish,
    key_slices,
    make_database,
    make_sink,
    make_spec,
    new_sink_backfill,
    new_transfer_backfill,
    plan,
    stumbled,
    unstarted,
)

ONE = PackLimits(max_slices=1)
ALL = PackLimits(slots=1)


def claim(store: Store, limits: PackLimits = ALL, worker: str = "w", lease: float = 30) -> Pack:
    pack = store.claim_pack(worker, limits, lease)
    assert pack is not None
    return pack


def indexes(pack: Pack) -> list[int]:
    return [claimed.slice.index for claimed in pack.slices]


def test_nothing_to_claim_is_none(store: Store) -> None:
    assert store.claim_pack("w", ALL, 30) is None
    store.insert_backfill(new_sink_backfill())
    assert store.claim_pack("w", ALL, 30) is None


def test_a_claim_takes_slices_in_order_and_makes_the_backfill_running(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(8))
    pack = claim(store, PackLimits(slots=2))
    assert indexes(pack) == [0, 1]
    assert pack.backfill.status is Status.RUNNING
    assert pack.backfill.started_at is not None
    first = pack.slices[0]
    assert (first.fence, first.slice.attempt, first.slice.state) == (1, 1, SliceState.RUNNING)
    assert (first.slice.worker, first.slice.pack) == ("w", pack.id)
    assert first.slice.started_at == pack.backfill.started_at
    kept = store.list_slices(made.id, states=[SliceState.RUNNING]).items
    assert kept == tuple(claimed.slice for claimed in pack.slices)
    now = store.get_backfill(1, made.id)
    assert now.status is Status.RUNNING
    assert now.started_at == pack.backfill.started_at
    assert now.updated_at == pack.backfill.updated_at
    # it began with its first pack, whatever comes later
    assert claim(store).backfill.started_at == now.started_at


def test_of_a_pack_one_slice_counts_as_running(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(16))
    claim(store, PackLimits(slots=2))
    claim(store, PackLimits(slots=2))
    counters = store.get_backfill(1, made.id).counters
    assert counters.slices_running == 2
    assert counters.slices_claimed == 7
    assert counters.slices_pending == 9


@pytest.mark.parametrize(
    ("limits", "rows", "expected"),
    [
        (PackLimits(slots=1, max_slices=3), 0, 3),
        (PackLimits(slots=1), 0, 10),
        (PackLimits(slots=2), 0, 5),
        (PackLimits(slots=4), 0, 3),
        (PackLimits(slots=100), 0, 1),
        (PackLimits(slots=1, max_rows=500), 200, 3),
        (PackLimits(slots=1, max_rows=400), 200, 2),
        (PackLimits(slots=1, max_rows=201), 200, 2),
        (PackLimits(slots=1, max_rows=100), 200, 1),
        (PackLimits(slots=1, max_rows=2500), 0, 3),
    ],
)
def test_a_pack_is_bounded(store: Store, limits: PackLimits, rows: int, expected: int) -> None:
    plan(store, new_sink_backfill(), key_slices(20, rows_estimated=rows))
    assert len(claim(store, limits).slices) == expected


def test_a_share_is_of_what_its_own_backfill_has_pending(store: Store) -> None:
    plan(store, new_sink_backfill(pipeline_id="a"), key_slices(8, target="a"))
    other = plan(store, new_sink_backfill(pipeline_id="b"), key_slices(40, target="b"))
    first = claim(store)
    assert indexes(first) == [0, 1, 2, 3]
    finish(store, first, done)
    assert claim(store, ONE).backfill.id == other.id
    assert indexes(claim(store)) == [4, 5]


def test_max_concurrent_counts_packs(store: Store) -> None:
    made = plan(store, new_sink_backfill(max_concurrent=2), key_slices(20))
    first = claim(store, ONE)
    claim(store, ONE)
    assert store.claim_pack("w", ONE, 30) is None
    store.finish_slices(made.id, [done(first.slices[0])], AT_ONCE)
    assert indexes(claim(store, ONE)) == [2]


def test_the_packs_of_another_do_not_count_against_its_limit(store: Store) -> None:
    plan(store, new_sink_backfill(pipeline_id="a"), key_slices(4, target="a"))
    claim(store, ONE)
    new = new_sink_backfill(pipeline_id="b", max_concurrent=1)
    limited = plan(store, new, key_slices(4, target="b"))
    assert claim(store, ONE).backfill.id == limited.id


def test_max_concurrent_holds_when_another_claims_between_the_look_and_the_claim(
    store: Store, before_write: Between
) -> None:
    plan(store, new_sink_backfill(max_concurrent=1), key_slices(4))
    before_write(store, lambda: claim(store, ONE))
    assert store.claim_pack("w", ONE, 30) is None


@pytest.mark.parametrize("paused", [False, True])
def test_what_is_stopped_between_the_look_and_the_claim_is_not_claimed(
    store: Store, before_write: Between, paused: bool
) -> None:
    made = plan(store, new_sink_backfill(), key_slices(2))

    def stop() -> object:
        if paused:
            return store.pause_backfill(1, made.id)
        return store.cancel_backfill(1, made.id, None)

    before_write(store, stop)
    assert store.claim_pack("w", ALL, 30) is None
    counters = store.get_backfill(1, made.id).counters
    assert counters.slices_pending + counters.slices_cancelled == 2


def test_who_waited_longest_is_next(store: Store) -> None:
    made = [
        plan(store, new_sink_backfill(pipeline_id=str(n)), key_slices(9, target=f"t{n}")).id
        for n in range(3)
    ]
    order = [claim(store, ONE).backfill.id for _ in range(6)]
    assert order == made + made


def test_schedules_go_first_and_every_fourth_claim_is_historys(store: Store) -> None:
    history = plan(store, new_sink_backfill(), key_slices(20)).id
    recurring = plan(
        store,
        new_transfer_backfill(days=20, origin=Origin.SCHEDULE, holds=()),
        dated_slices(dates_from(FIRST, 20)),
    ).id
    order = [claim(store, ONE).backfill.id for _ in range(8)]
    assert order == [recurring, recurring, recurring, history] * 2


def test_a_slot_is_not_left_idle_when_only_the_other_kind_waits(store: Store) -> None:
    history = plan(store, new_sink_backfill(), key_slices(6)).id
    assert {claim(store, ONE).backfill.id for _ in range(5)} == {history}


def test_a_target_with_a_running_slice_of_another_backfill_is_passed_over(store: Store) -> None:
    first = plan(store, new_transfer_backfill(days=2), dated_slices(dates_from(FIRST, 2)))
    pack = claim(store, ONE)
    store.cancel_backfill(1, first.id, None)
    second = plan(store, new_transfer_backfill(days=3), dated_slices(dates_from(FIRST, 3)))
    other = claim(store, ALL)
    assert other.backfill.id == second.id
    assert indexes(other) == [1, 2]
    assert store.claim_pack("w", ALL, 30) is None
    finish(store, pack, done)
    last = claim(store, ALL)
    assert indexes(last) == [0]
    assert last.slices[0].fence == 2


def test_a_target_that_a_newer_backfill_runs_on_is_passed_over(store: Store) -> None:
    older = plan(store, new_transfer_backfill(days=1), dated_slices([FIRST]))
    recurring = new_transfer_backfill(days=1, origin=Origin.SCHEDULE, holds=())
    newer = plan(store, recurring, dated_slices([FIRST]))
    pack = claim(store)
    assert pack.backfill.id == newer.id
    assert store.claim_pack("w", ALL, 30) is None
    finish(store, pack, done)
    assert claim(store).backfill.id == older.id


@pytest.mark.parametrize("busy", [0, 1])
def test_of_two_targets_the_free_one_is_claimed(store: Store, busy: int) -> None:
    days = dates_from(FIRST, 2)
    new = new_transfer_backfill(days=1, first=days[busy])
    first = plan(store, new, dated_slices([days[busy]]))
    claim(store)
    store.cancel_backfill(1, first.id, None)
    plan(store, new_transfer_backfill(days=2), dated_slices(days))
    assert indexes(claim(store)) == [1 - busy]


def test_the_slices_of_one_backfill_share_their_target(store: Store) -> None:
    first = plan(store, new_sink_backfill(), key_slices(4))
    running = [claim(store, ONE), claim(store, ONE)]
    assert {pack.slices[0].fence for pack in running} == {1}
    store.cancel_backfill(1, first.id, None)
    plan(store, new_sink_backfill(), key_slices(4))
    assert store.claim_pack("w", ONE, 30) is None
    finish(store, running[0], done)
    assert store.claim_pack("w", ONE, 30) is None
    finish(store, running[1], done)
    assert claim(store, ONE).slices[0].fence == 2


def test_the_slices_of_one_backfill_share_a_target_among_several(store: Store) -> None:
    plan(store, new_sink_backfill(), [*key_slices(2, target="a"), *key_slices(1, target="b")])
    assert [indexes(claim(store, ONE)) for _ in range(3)] == [[0], [1], [2]]


def test_a_fence_rises_only_when_the_target_changes_hands(store: Store) -> None:
    plan(store, new_sink_backfill(), key_slices(1))
    first = claim(store)
    finish(store, first, unstarted)
    second = claim(store)
    assert (second.slices[0].fence, second.slices[0].slice.attempt) == (1, 2)
    finish(store, second, done)
    for fence in (2, 3):
        plan(store, new_sink_backfill(), key_slices(1))
        pack = claim(store)
        assert (pack.slices[0].fence, pack.slices[0].slice.attempt) == (fence, 1)
        finish(store, pack, done)


def test_a_claim_leaves_the_fences_of_other_targets_alone(store: Store) -> None:
    for name in ("a", "b"):
        plan(store, new_sink_backfill(pipeline_id=name), key_slices(1, target=name))
    assert [claim(store).slices[0].fence for _ in range(2)] == [1, 1]


def test_a_slice_that_stumbled_waits_and_lets_the_others_pass(store: Store) -> None:
    plan(store, new_sink_backfill(), key_slices(3))
    finish(store, claim(store, ONE), stumbled, RetryPolicy(base_seconds=100))
    assert indexes(claim(store)) == [1, 2]
    assert store.claim_pack("w", ALL, 30) is None


def test_a_pack_knows_what_its_backfill_rejected_so_far(store: Store) -> None:
    plan(store, new_sink_backfill(spec=make_spec(max_rejects=5)), key_slices(3))
    store.finish_slices(
        (pack := claim(store, ONE)).backfill.id,
        [done(pack.slices[0]).model_copy(update={"rows_rejected": 3})],
        AT_ONCE,
    )
    other = plan(store, new_sink_backfill(pipeline_id="b"), key_slices(1, target="b"))
    pack = claim(store, ONE)
    assert (pack.backfill.id, pack.rows_rejected) == (other.id, 0)
    assert claim(store, ONE).rows_rejected == 3


def test_heartbeats_extend_what_is_held_and_name_what_is_not(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(6))
    pack = claim(store, lease=5)
    held = [(claimed.slice.id, claimed.slice.attempt) for claimed in pack.slices]
    before = store.list_slices(made.id, states=[SliceState.RUNNING]).items
    assert store.heartbeat("w", held, [], 60) == (frozenset(), frozenset())
    after = store.list_slices(made.id, states=[SliceState.RUNNING]).items
    assert all(
        new.lease_until and old.lease_until and new.lease_until > old.lease_until
        for new, old in zip(after, before, strict=True)
    )
    store.release_slices(held[:1])
    stale = [(held[1][0], 7)]
    lost, _ = store.heartbeat("w", [held[0], *stale, held[2], (10**9, 1)], [], 60)
    assert lost == {held[0][0], held[1][0], 10**9}


def test_a_heartbeat_extends_nobody_elses_lease(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(4))
    mine, other = claim(store, ONE), claim(store, ONE, "another")
    store.heartbeat("w", [(mine.slices[0].slice.id, 1)], [], 600)
    first, second = store.list_slices(made.id, states=[SliceState.RUNNING]).items
    assert first.lease_until != mine.slices[0].slice.lease_until
    assert second.lease_until == other.slices[0].slice.lease_until


def test_what_is_held_of_several_backfills_is_released(store: Store) -> None:
    for name in ("a", "b"):
        plan(store, new_sink_backfill(pipeline_id=name), key_slices(1, target=name))
    packs = [claim(store), claim(store)]
    assert store.release_slices([(pack.slices[0].slice.id, 1) for pack in packs]) == 2
    assert {claim(store).slices[0].slice.attempt for _ in packs} == {2}


def test_a_release_gives_back_without_a_failure(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(6))
    pack = claim(store)
    held = [(claimed.slice.id, claimed.slice.attempt) for claimed in pack.slices]
    assert store.release_slices([*held, (10**9, 1)]) == 3
    assert store.release_slices(held) == 0
    slices = store.list_slices(made.id).items
    assert {(s.state, s.failures) for s in slices} == {(SliceState.PENDING, 0)}
    assert [s.attempt for s in slices] == [1, 1, 1, 0, 0, 0]
    assert claim(store).slices[0].slice.attempt == 2


@pytest.mark.parametrize("status", ["paused", "disabled"])
def test_backfills_wait_for_their_sink(store: Store, status: str) -> None:
    database = make_database()
    store.insert_database(database)
    sink = store.insert_sink(make_sink(database.id))
    other = plan(store, new_sink_backfill(), key_slices(1, "elsewhere"))
    held = plan(store, new_sink_backfill(pipeline_id=sink.id), key_slices(2))
    store.update_sink(dataclasses.replace(sink, status=status))
    unplanned = store.insert_backfill(new_sink_backfill(pipeline_id=sink.id, holds=("public.b",)))

    assert store.claim_plan("w", 30) is None
    pack = claim(store)
    assert pack.backfill.id == other.id
    assert store.claim_pack("w", ALL, 30) is None

    store.update_sink(sink)
    assert claim(store).backfill.id == held.id
    planning = store.claim_plan("w", 30)
    assert planning is not None
    assert planning.backfill.id == unplanned.id


def test_what_runs_when_its_sink_is_paused_is_finished(store: Store) -> None:
    database = make_database()
    store.insert_database(database)
    sink = store.insert_sink(make_sink(database.id))
    made = plan(store, new_sink_backfill(pipeline_id=sink.id), key_slices(1))
    pack = claim(store)
    store.update_sink(dataclasses.replace(sink, status="paused"))
    assert finish(store, pack, done).status is Status.COMPLETED
    assert store.get_backfill(1, made.id).counters.rows_delivered == 10


def test_database_time_is_aware_and_moves(store: Store) -> None:
    first = store.now()
    assert first.tzinfo is not None
    assert store.now() >= first
