"""What a sink's options refer to is looked up when a slice runs, over a real store."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from refill.connectors.kit.registry import load_connectors
from refill.domain.backfill import Backfill
from refill.domain.errors import SinkRefused
from refill.domain.pipeline import HttpEndpoint
from refill.settings import Settings
from refill.store.cipher import load_cipher
from refill.store.open import open_store
from refill.store.port import Store
from refill.worker.ends import EndsFinder
from tests.contract.store.factories import (
    make_database,
    make_endpoint,
    make_sink,
    make_spec,
    new_sink_backfill,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = open_store(None, tmp_path, load_cipher(None, tmp_path))
    made.migrate()
    yield made
    made.close()


@pytest.fixture
def ends(store: Store, tmp_path: Path) -> EndsFinder:
    return EndsFinder(store, load_connectors(), Settings(home=tmp_path))


@pytest.fixture
def endpoint(store: Store) -> HttpEndpoint:
    return store.insert_endpoint(make_endpoint())


@pytest.fixture
def backfill(store: Store, endpoint: HttpEndpoint) -> Backfill:
    """Of a sink that sends to the endpoint, frozen as the service freezes it: by the id."""
    database = store.insert_database(make_database())
    options = {"http_endpoint": endpoint.id, "headers": {"X-Own": "1"}}
    sink = store.insert_sink(
        make_sink(database.id, destination_type="webhook", destination_options=options)
    )
    frozen = {"http_endpoint": endpoint.id}
    spec = make_spec(
        database_id=database.id, sink_type="webhook", sink_options=frozen, sink_id=sink.id
    )
    return store.insert_backfill(new_sink_backfill(pipeline_id=sink.id, spec=spec))


def test_the_endpoint_is_merged_as_it_is_now(
    store: Store, ends: EndsFinder, endpoint: HttpEndpoint, backfill: Backfill
) -> None:
    assert ends.find(backfill).sink_options["url"] == "https://example.com/hook"
    moved = replace(endpoint, name="renamed", url="https://example.com/2")
    store.update_endpoint(moved)
    options = ends.find(backfill).sink_options
    assert options["url"] == "https://example.com/2"
    assert options["headers"] == {"X-Own": "1", "X-Plain": "1", "Authorization": "Bearer s3cret"}


def test_an_endpoint_that_was_deleted_meanwhile_is_refused(
    store: Store, ends: EndsFinder, endpoint: HttpEndpoint, backfill: Backfill
) -> None:
    store.delete_endpoint(1, endpoint.id)
    with pytest.raises(SinkRefused, match=f"The HTTP endpoint {endpoint.id} was deleted"):
        ends.find(backfill)
