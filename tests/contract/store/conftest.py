"""Every test of this suite runs on SQLite and on a real PostgreSQL."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from refill.store.cipher import AesCipher
from refill.store.open import open_store
from refill.store.port import Store
from tests.servers.postgres import PostgresServer

Opener = Callable[..., Store]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Opens stores over one and the same database, as several processes would."""
    url = None
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.create_database("store")
    opened: list[Store] = []

    def open_one(key: str = "a key for tests", **options: float) -> Store:
        opened.append(open_store(url, tmp_path / "home", AesCipher(key), **options))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(opener: Opener) -> Store:
    """An empty store with team 1 and user 1."""
    store = opener()
    store.migrate()
    return store
