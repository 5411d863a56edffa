"""One bed per test, over a copy of a migrated store: migrating takes longer than most tests."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from refill.store.cipher import AesCipher
from refill.store.open import FILE, open_store
from tests.contract.worker.bed import Bed

KEY = "a key for tests"


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("migrated")
    store = open_store(None, home, AesCipher(KEY))
    store.migrate()
    store.close()
    return home / FILE


@pytest.fixture
def bed(migrated: Path, tmp_path: Path) -> Iterator[Bed]:
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(migrated, home / FILE)
    store = open_store(None, home, AesCipher(KEY))
    yield Bed(home, store)
    store.close()
