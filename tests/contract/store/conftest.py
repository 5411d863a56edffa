"""Every test of this suite runs on SQLite and on a real PostgreSQL."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from refill.store.cipher import AesCipher
from refill.store.open import FILE, open_store
from refill.store.port import Store
from tests.servers.postgres import PostgresServer

Opener = Callable[..., Store]
KEY = "a key for tests"
BACKENDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=BACKENDS, scope="session")
def template(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> object:
    """A migrated store that each test gets a copy of: migrating takes longer than most tests."""
    url, home = None, tmp_path_factory.mktemp("template")
    if request.param == "postgres":
        url = request.getfixturevalue("postgres").create_database("template")
    store = open_store(url, home, AesCipher(KEY))
    store.migrate()
    store.close()
    return url or home / FILE


@pytest.fixture
def opener(
    template: Path | str, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Opener]:
    """Opens stores over one and the same database, as several processes would."""
    home, url = tmp_path / "home", None
    if isinstance(template, Path):
        home.mkdir()
        shutil.copy(template, home / FILE)
    else:
        url = _copy_database(request.getfixturevalue("postgres"), template)
    opened: list[Store] = []

    def open_one(key: str = KEY, **options: float) -> Store:
        opened.append(open_store(url, home, AesCipher(key), **options))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(opener: Opener) -> Store:
    """An empty store with team 1 and user 1."""
    return opener()


@pytest.fixture(params=BACKENDS)
def empty_opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Opens stores over a database in which nothing is yet."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    opened: list[Store] = []

    def open_one() -> Store:
        opened.append(open_store(url, tmp_path / "empty", AesCipher(KEY)))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


def _copy_database(server: PostgresServer, template: str) -> str:
    name = f"store_{uuid4().hex[:12]}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        source = template.rsplit("/", 1)[1]
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{source}"')
    return server.url(name)
