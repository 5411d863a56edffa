"""Every test of this suite runs on SQLite and on a real PostgreSQL."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from refill.store.cipher import AesCipher
from refill.store.indexes import metadata
from refill.store.open import FILE, open_store
from refill.store.port import Store

Opener = Callable[..., Store]
Between = Callable[[Store, Callable[[], object]], None]
KEY = "a key for tests"
BACKENDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=BACKENDS, scope="session")
def template(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> object:
    """A migrated store that each test gets as new: migrating takes longer than most tests."""
    url, home = None, tmp_path_factory.mktemp("template")
    if request.param == "postgres":
        url = request.getfixturevalue("postgres").create_database("template")
    store = open_store(url, home, AesCipher(KEY))
    store.migrate()
    store.close()
    return url or home / FILE


@pytest.fixture
def opener(template: Path | str, tmp_path: Path) -> Iterator[Opener]:
    """Opens stores over one and the same database, as several processes would."""
    home, url = tmp_path / "home", None
    if isinstance(template, Path):
        home.mkdir()
        shutil.copy(template, home / FILE)
    else:
        url = template
        _empty(url)
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


@pytest.fixture
def before_write(monkeypatch: pytest.MonkeyPatch) -> Between:
    """Lets something happen between what a store looks at first and what it writes then."""

    def arrange(store: Store, happen: Callable[[], object]) -> None:
        backend = store._backend  # type: ignore[attr-defined]
        write = backend.write

        def write_late() -> object:
            monkeypatch.setattr(backend, "write", write)
            happen()
            return write()

        monkeypatch.setattr(backend, "write", write_late)

    return arrange


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


def _empty(url: str) -> None:
    """As it was when it was migrated: faster than another database."""
    with psycopg.connect(url) as connection:
        for table in reversed(metadata.sorted_tables):
            if table.name == "tallies":
                connection.execute("UPDATE tallies SET value = 0")
            elif table.name in ("teams", "users"):
                connection.execute(f"DELETE FROM {table.name} WHERE id <> 1")
            else:
                connection.execute(f"DELETE FROM {table.name}")
