"""A source that does not answer costs the first who asks two seconds, not everybody."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from refill.clock import system_clock
from refill.connectors.kit.contract import Connector, Options
from refill.domain.pipeline import Database
from refill.domain.table import Table
from refill.service import catalogue as module
from refill.service.catalogue import Catalogue
from refill.service.probes import Probes
from refill.settings import Settings
from refill.store.records import StoredCatalogue
from tests.specs import pg_column

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STORED = Table(
    schema_name="public", name="orders", columns=(pg_column(name="id", type="int", oid=23),)
)


class HangingSource:
    """Never says anything until it is told to; counts who asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.answers = threading.Event()

    def find_table(self, schema: str, name: str) -> Table | None:
        self.asked += 1
        self.answers.wait(60)
        return None

    def close(self) -> None:
        pass


@pytest.fixture
def source() -> Iterator[HangingSource]:
    made = HangingSource()
    yield made
    made.answers.set()


@pytest.fixture
def catalogue(source: HangingSource, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalogue]:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.3)
    connector = Connector(
        type="deep", title="Deep", options_model=Options, open_source=lambda *_: source
    )
    # a source that never answers leaves nothing to save
    kept = StoredCatalogue(tables=(STORED,), at=NOW)
    store: Any = SimpleNamespace(get_catalogue=lambda database_id: kept)
    made = Catalogue(
        store=store,
        connectors={"deep": connector},
        settings=Settings(),
        clock=system_clock,
        probes=Probes(seconds=10.0, per_team=8),
    )
    yield made
    source.answers.set()


DATABASE = Database(
    id="d",
    team_id=1,
    name="deep",
    type="deep",
    options={},
    created_at=NOW,
    updated_at=NOW,
)


def test_a_silent_source_is_not_asked_again_at_once(
    catalogue: Catalogue, source: HangingSource
) -> None:
    for _ in range(20):
        assert catalogue.find_now(DATABASE, "public.orders") == STORED
    unknown = catalogue.find_now(DATABASE, "public.items")
    assert unknown is not None
    assert unknown.columns == ()
    assert source.asked == 1


def test_it_is_asked_again_after_a_while_and_when_it_was_changed(
    catalogue: Catalogue, source: HangingSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue.find_now(DATABASE, "public.orders")
    mended = replace(DATABASE, updated_at=NOW + timedelta(seconds=1))
    catalogue.find_now(mended, "public.orders")
    assert source.asked == 2
    monkeypatch.setattr(module, "SILENT_SECONDS", 0.0)
    catalogue.find_now(DATABASE, "public.orders")
    catalogue.find_now(DATABASE, "public.orders")
    assert source.asked == 4
