"""A store that is locked, away or full says so, and works again when it can."""

import sqlite3
from pathlib import Path

import psycopg
import pytest

from refill.domain.errors import Misconfigured, StoreBusy
from refill.store.cipher import AesCipher
from refill.store.open import FILE, open_store
from refill.store.port import Store
from refill.store.records import PackLimits
from tests.contract.store.conftest import KEY
from tests.contract.store.factories import (
    FIRST,
    dated_slices,
    key_slices,
    new_sink_backfill,
    new_transfer_backfill,
    plan,
    run_all,
)
from tests.servers.postgres import PostgresServer, free_port


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Store:
    store = open_store(None, tmp_path, AesCipher(KEY), busy_seconds=0.2)
    store.migrate()
    return store


def test_a_locked_sqlite_store_is_busy_and_says_when_to_come_back(
    sqlite_store: Store, tmp_path: Path
) -> None:
    plan(sqlite_store, new_sink_backfill(), key_slices(1))
    pack = sqlite_store.claim_pack("w", PackLimits(), 30)
    assert pack is not None
    held = [(pack.slices[0].slice.id, 1)]
    other = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    for call in (
        sqlite_store.check,
        lambda: sqlite_store.list_backfills(1),
        lambda: sqlite_store.insert_backfill(new_sink_backfill()),
        lambda: sqlite_store.heartbeat("w", held, [], 30),
    ):
        with pytest.raises(StoreBusy) as caught:
            call()
        assert caught.value.retry_after_seconds
    other.execute("ROLLBACK")
    other.close()
    assert sqlite_store.heartbeat("w", held, [], 30) == (frozenset(), frozenset())
    sqlite_store.close()


def test_a_full_disk_is_busy_and_leaves_nothing_half_written(
    sqlite_store: Store, tmp_path: Path
) -> None:
    made = sqlite_store.insert_backfill(new_sink_backfill())
    claim = sqlite_store.claim_plan("w", 30)
    assert claim is not None
    # SQLite's own limit: the same answer as from a full disk
    backend = sqlite_store._backend  # type: ignore[attr-defined]
    with backend.read() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreBusy, match="room"):
        sqlite_store.save_plan(claim, key_slices(2000), rows_estimated=0)
    with backend.read() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
    assert sqlite_store.list_slices(made.id).items == ()
    planned = sqlite_store.save_plan(claim, key_slices(2000), rows_estimated=0)
    assert planned.counters.slices_pending == 2000
    sqlite_store.close()


def test_a_home_that_is_a_file_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(Misconfigured, match="home directory"):
        open_store(None, tmp_path / "home", AesCipher(KEY))


def test_a_file_that_is_no_database_is_said_so(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("this is no database, however long it is " * 100)
    store = open_store(None, tmp_path, AesCipher(KEY))
    with pytest.raises(Misconfigured, match="damaged"):
        store.migrate()
    store.close()


@pytest.mark.parametrize("url", ["nonsense", "mysql://localhost/x"])
def test_a_store_url_that_cannot_be_is_said_so(tmp_path: Path, url: str) -> None:
    with pytest.raises(Misconfigured, match="store URL"):
        open_store(url, tmp_path, AesCipher(KEY))


def test_a_postgres_that_is_away_is_busy(tmp_path: Path) -> None:
    url = f"postgresql://nobody:secret@127.0.0.1:{free_port()}/x"
    store = open_store(url, tmp_path, AesCipher(KEY), busy_seconds=1)
    with pytest.raises(StoreBusy) as caught:
        store.check()
    assert "secret" not in str(caught.value)
    store.close()


@pytest.mark.postgres
def test_a_wrong_password_is_a_matter_of_configuration(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.url().replace("secret", "wrong")
    store = open_store(url, tmp_path, AesCipher(KEY))
    with pytest.raises(Misconfigured, match="store URL"):
        store.check()
    store.close()


@pytest.mark.postgres
def test_connections_that_were_cut_are_made_anew(
    postgres: PostgresServer, postgres_url: str, tmp_path: Path
) -> None:
    store = open_store(postgres_url, tmp_path, AesCipher(KEY))
    store.migrate()
    plan(store, new_transfer_backfill(days=1), dated_slices([FIRST]))
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        name = postgres_url.rsplit("/", 1)[1]
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
        )
    run_all(store)
    assert store.check()["backend"] == "postgresql"
    store.close()


@pytest.mark.postgres
def test_a_row_that_somebody_else_holds_makes_it_busy_not_stuck(
    postgres_url: str, tmp_path: Path
) -> None:
    store = open_store(postgres_url, tmp_path, AesCipher(KEY), busy_seconds=0.3)
    store.migrate()
    made = store.insert_backfill(new_sink_backfill())
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SELECT * FROM backfills FOR UPDATE")
        with pytest.raises(StoreBusy):
            store.pause_backfill(1, made.id)
    store.pause_backfill(1, made.id)
    store.close()
