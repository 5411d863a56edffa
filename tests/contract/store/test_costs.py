"""What must stay cheap however much is in the store: statements and steps, not seconds."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from refill.domain.retry import RetryPolicy
from refill.store.cipher import AesCipher
from refill.store.open import open_store
from refill.store.port import Store
from refill.store.records import Pack, PackLimits, Swept
from refill.store.tables import backfills
from tests.contract.store.conftest import KEY
from tests.contract.store.factories import (
    FIRST,
    dated_slices,
    dates_from,
    finish,
    key_slices,
    new_sink_backfill,
    new_transfer_backfill,
    plan,
    run_all,
    stumbled,
)
from tests.statements import counted, engine_of, stepped


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Store]:
    """Only SQLite counts its steps; the statements are the same on PostgreSQL."""
    store = open_store(None, tmp_path / "embedded", AesCipher(KEY))
    store.migrate()
    yield store
    store.close()


def writes(seen: list[str]) -> list[str]:
    """What queues for the right to write: all of SQLite, a row of PostgreSQL."""
    return [said for said in seen if "BEGIN IMMEDIATE" in said or "FOR UPDATE" in said]


def test_a_list_takes_as_many_statements_for_thirty_as_for_three(store: Store) -> None:
    def statements() -> int:
        with counted(store) as seen:
            store.list_backfills(1)
        return len(seen)

    def add(first: int, last: int) -> None:
        for number in range(first, last):
            new = new_sink_backfill(pipeline_id=str(number))
            plan(store, new, key_slices(2, target=str(number)))

    add(0, 3)
    few = statements()
    add(3, 30)
    assert statements() == few


def test_a_claim_takes_no_more_statements_however_much_is_pending(store: Store) -> None:
    plan(store, new_sink_backfill(), key_slices(5000))
    with counted(store) as seen:
        pack = store.claim_pack("w", PackLimits(max_slices=64), 30)
    assert pack is not None
    assert len(pack.slices) == 64
    assert len(seen) <= 16


def test_a_claim_among_ten_thousand_slices_walks_no_further_than_among_fifty(
    embedded: Store,
) -> None:
    store = embedded

    def least(target: str, count: int) -> int:
        made = plan(store, new_sink_backfill(pipeline_id=target), key_slices(count, target=target))
        walked = []
        for _ in range(3):
            with stepped(store) as steps:
                pack = store.claim_pack("w", PackLimits(max_slices=4), 30)
            assert pack is not None
            assert pack.backfill.id == made.id
            walked.append(steps.tens)
        store.cancel_backfill(1, made.id, None)
        return min(walked)

    few = least("few", 50)
    assert few > 0
    assert least("many", 10_000) < 3 * few


def test_a_claim_walks_no_further_for_the_targets_of_others(embedded: Store) -> None:
    store = embedded

    def walked() -> int:
        with stepped(store) as steps:
            assert store.claim_pack("w", PackLimits(max_slices=1), 30) is not None
        return steps.tens

    plan(store, new_sink_backfill(), key_slices(20))
    walked()
    few = walked()
    days = dates_from(FIRST, 5000)
    others = plan(store, new_transfer_backfill(days=1), dated_slices(days))
    store.pause_backfill(1, others.id)
    assert walked() < 3 * few


def test_a_thousand_backfills_are_listed_with_the_statements_of_one(store: Store) -> None:
    def statements() -> int:
        with counted(store) as seen:
            assert store.list_backfills(1).items[-1] == one
        return len(seen)

    one = store.insert_backfill(new_sink_backfill(pipeline_id="first"))
    alone = statements()
    with engine_of(store).begin() as connection:
        row = dict(connection.execute(sa.select(backfills)).mappings().one())
        del row["id"]
        connection.execute(backfills.insert(), [row | {"uid": str(n)} for n in range(999)])
    assert len(store.list_backfills(1).items) == 1000
    assert statements() == alone


def test_a_look_that_finds_nothing_waits_for_no_writer(store: Store) -> None:
    def claim_one(name: str, slices: int, **changes: object) -> Pack:
        new = new_sink_backfill(pipeline_id=name, **changes)
        plan(store, new, key_slices(slices, target=name))
        pack = store.claim_pack("w", PackLimits(max_slices=1), 30)
        assert pack is not None
        return pack

    claim_one("at its limit", 2, max_concurrent=1)
    claim_one("all running", 1)
    finish(store, claim_one("waiting", 1), stumbled, RetryPolicy(base_seconds=100))
    paused = plan(store, new_sink_backfill(pipeline_id="paused"), key_slices(1, target="paused"))
    store.pause_backfill(1, paused.id)
    with counted(store) as seen:
        assert store.claim_pack("w", PackLimits(), 30) is None
        assert store.claim_plan("w", 30) is None
        assert store.claim_seal("w", 30) is None
        assert store.sweep(RetryPolicy()) == Swept()
    assert not writes(seen)


def test_what_was_pruned_is_not_looked_at_again(store: Store) -> None:
    plan(store, new_sink_backfill(), key_slices(2))
    run_all(store)
    with engine_of(store).begin() as connection:
        connection.execute(backfills.update().values(ended_at=0))

    def transactions() -> int:
        with counted(store) as seen:
            store.prune(1)
        return len(writes(seen))

    assert transactions() > transactions()


def test_slices_wait_behind_a_busy_target_without_being_walked_each_time(store: Store) -> None:
    first = plan(store, new_sink_backfill(), key_slices(2))
    assert store.claim_pack("w", PackLimits(), 30) is not None
    store.cancel_backfill(1, first.id, None)
    plan(store, new_sink_backfill(), key_slices(5000))
    with counted(store) as seen:
        assert store.claim_pack("w", PackLimits(), 30) is None
    # the first look tells: no transaction is begun for it
    assert not writes(seen)
    assert len(seen) <= 4
