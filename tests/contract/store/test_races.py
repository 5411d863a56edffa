"""Many at once: what the database holds, whatever the threads do."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import TypeVar

from refill.domain.backfill import Backfill, Origin, Status
from refill.domain.errors import Conflict
from refill.domain.slice import SliceState
from refill.store.port import Store
from refill.store.records import Finished, Pack, PackLimits
from tests.contract.store.conftest import Opener
from tests.contract.store.factories import (
    AT_ONCE,
    FIRST,
    NOW,
    dated_slices,
    dates_from,
    done,
    finish,
    key_slices,
    make_database,
    make_destination,
    make_transfer,
    new_sink_backfill,
    new_transfer_backfill,
    plan,
    stumbled,
)

T = TypeVar("T")
ONE = PackLimits(max_slices=1)


def at_once(threads: int, work: Callable[[int], T]) -> list[T]:
    """Runs it in so many threads that begin together."""
    barrier = threading.Barrier(threads)

    def begin(number: int) -> T:
        barrier.wait(timeout=30)
        return work(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begin, range(threads)))


def test_of_fifty_identical_creates_one_wins(opener: Opener) -> None:
    stores = [opener(busy_seconds=30) for _ in range(2)]

    def create(number: int) -> Backfill | Conflict:
        try:
            return stores[number % 2].insert_backfill(new_transfer_backfill(days=30))
        except Conflict as conflict:
            return conflict

    answers = at_once(50, create)
    made = [answer for answer in answers if isinstance(answer, Backfill)]
    assert len(made) == 1
    refused = [answer.other for answer in answers if isinstance(answer, Conflict)]
    assert {other.id for other in refused if isinstance(other, Backfill)} == {made[0].id}
    assert len(refused) == 49
    assert len(stores[0].list_backfills(1).items) == 1


def test_a_backfill_is_planned_by_one(opener: Opener) -> None:
    stores = [opener(busy_seconds=30) for _ in range(4)]
    for number in range(3):
        stores[0].insert_backfill(new_sink_backfill(pipeline_id=str(number)))
    claims = at_once(8, lambda number: stores[number % 4].claim_plan(f"w{number}", 30))
    taken = Counter(claim.backfill.id for claim in claims if claim is not None)
    assert set(taken.values()) == {1}
    while (claim := stores[0].claim_plan("w", 30)) is not None:
        taken[claim.backfill.id] += 1
    assert sorted(taken.values()) == [1, 1, 1]


def test_each_slice_is_claimed_once_per_attempt(opener: Opener) -> None:
    stores = [opener(busy_seconds=30) for _ in range(2)]
    plan(stores[0], new_sink_backfill(), key_slices(60))

    def work(number: int) -> list[tuple[int, int]]:
        taken = []
        limits = PackLimits(slots=4, max_slices=4)
        while (pack := stores[number % 2].claim_pack(f"w{number}", limits, 30)) is not None:
            taken += [(c.slice.id, c.slice.attempt) for c in pack.slices]
        return taken

    claimed = [pair for pairs in at_once(6, work) for pair in pairs]
    assert len(claimed) == len(set(claimed)) == 60
    assert {attempt for _, attempt in claimed} == {1}


def test_a_claim_is_not_turned_away_because_another_is_made_this_moment(store: Store) -> None:
    plan(store, new_sink_backfill(), key_slices(40))
    packs = at_once(6, lambda number: store.claim_pack(f"w{number}", ONE, 30))
    assert all(pack is not None for pack in packs)


def test_max_concurrent_holds_under_pressure(opener: Opener) -> None:
    stores = [opener(busy_seconds=30) for _ in range(2)]
    plan(stores[0], new_sink_backfill(max_concurrent=2), key_slices(40))
    packs = at_once(8, lambda number: stores[number % 2].claim_pack(f"w{number}", ONE, 30))
    assert sum(pack is not None for pack in packs) == 2


def test_two_backfills_never_run_on_one_target(opener: Opener) -> None:
    stores = [opener(busy_seconds=30) for _ in range(2)]
    days = dates_from(FIRST, 6)
    for origin in (Origin.REQUEST, Origin.SCHEDULE):
        holds = () if origin is Origin.SCHEDULE else ("2026-01-01",)
        plan(
            stores[0],
            new_transfer_backfill(days=6, origin=origin, holds=holds),
            dated_slices(days),
        )
    guard, busy, clashes = threading.Lock(), {}, []  # type: ignore[var-annotated]
    left = [12]

    def work(number: int) -> None:
        store = stores[number % 2]
        while left[0]:
            pack = store.claim_pack(f"w{number}", ONE, 30)
            if pack is None:
                continue
            target = pack.slices[0].slice.target
            with guard:
                if target in busy:
                    clashes.append((target, busy[target], pack.backfill.id))
                busy[target] = pack.backfill.id
            with guard:
                del busy[target]
                left[0] -= 1
            finish(store, pack, done)

    at_once(4, work)
    assert clashes == []
    assert {b.status for b in stores[0].list_backfills(1).items} == {Status.COMPLETED}


def test_of_two_claims_at_the_same_moment_one_gets_the_target(opener: Opener) -> None:
    stores = [opener(busy_seconds=30) for _ in range(2)]
    for day in dates_from(FIRST, 8):
        for origin in (Origin.REQUEST, Origin.SCHEDULE):
            new = new_transfer_backfill(days=1, first=day, origin=origin, holds=())
            plan(stores[0], new, dated_slices([day]))
        packs = at_once(2, lambda number: stores[number].claim_pack(f"w{number}", ONE, 30))
        taken = [pack for pack in packs if pack is not None]
        assert len(taken) == 1
        finish(stores[0], taken[0], done)
        last = stores[0].claim_pack("w", ONE, 30)
        assert last is not None
        assert last.slices[0].fence == taken[0].slices[0].fence + 1
        finish(stores[0], last, done)


def test_of_two_last_finishes_one_ends_the_backfill(opener: Opener) -> None:
    stores = [opener(busy_seconds=30) for _ in range(4)]
    for number in range(4):
        made = plan(stores[0], new_sink_backfill(), key_slices(4))
        packs: list[Pack] = []
        while (pack := stores[0].claim_pack("w", ONE, 30)) is not None:
            packs.append(pack)

        def end(number: int, packs: list[Pack] = packs) -> Finished:
            return finish(stores[number], packs[number], done)

        answers = at_once(4, end)
        assert [answer.status for answer in answers].count(Status.COMPLETED) == 1, number
        assert stores[0].get_backfill(1, made.id).status is Status.COMPLETED


def test_cancelling_races_with_claims_and_finishes(opener: Opener) -> None:
    stores = [opener(busy_seconds=30) for _ in range(3)]
    made = plan(stores[0], new_sink_backfill(), key_slices(60))
    cancelled = threading.Event()
    late: list[Pack] = []

    def work(number: int) -> None:
        store = stores[number % 3]
        if number == 0:
            store.cancel_backfill(1, made.id, None)
            cancelled.set()
            return
        for turn in count():
            # some are left for after the cancel, however late its thread comes to it
            over = cancelled.wait(60) if turn > 4 else cancelled.is_set()
            pack = store.claim_pack(f"w{number}", PackLimits(max_slices=2), 30)
            if pack is None:
                return
            if over:
                late.append(pack)
            finish(store, pack, done)

    at_once(5, work)
    assert late == []
    over = stores[0].get_backfill(1, made.id)
    assert over.status is Status.CANCELLED
    states = Counter(part.state for part in stores[0].list_slices(made.id).items)
    assert states[SliceState.PENDING] == states[SliceState.RUNNING] == 0
    assert over.counters.slices_completed == states[SliceState.COMPLETED]
    assert over.counters.slices_cancelled == states[SliceState.CANCELLED]


def test_heartbeats_finishes_and_sweeps_do_not_block_each_other(opener: Opener) -> None:
    stores = [opener(busy_seconds=30) for _ in range(3)]
    made = plan(stores[0], new_sink_backfill(), key_slices(40))
    stop = threading.Event()
    held: list[tuple[int, int]] = []

    def work(number: int) -> None:
        store = stores[number % 3]
        if number == 0:
            while not stop.is_set():
                store.heartbeat("w", list(held), [], 30)
                store.sweep(AT_ONCE)
            return
        try:
            limits = PackLimits(max_slices=4)
            while (pack := store.claim_pack(f"w{number}", limits, 30)) is not None:
                held.extend((c.slice.id, c.slice.attempt) for c in pack.slices)
                first = pack.slices[0].slice.index % 8 == 0 and pack.slices[0].slice.attempt == 1
                finish(store, pack, stumbled if first else done)
        finally:
            if number == 1:
                stop.set()

    at_once(4, work)
    while (pack := stores[0].claim_pack("w", ONE, 30)) is not None:
        finish(stores[0], pack, done)
    assert stores[0].get_backfill(1, made.id).status is Status.COMPLETED


def test_one_of_many_fires_a_schedule(store: Store) -> None:
    database = store.insert_database(make_database())
    destination = store.insert_destination(make_destination())
    transfer = store.insert_transfer(make_transfer(database.id, destination.id))
    fired = at_once(6, lambda _: store.mark_schedule_fired(transfer.id, NOW, None))
    assert fired.count(True) == 1
