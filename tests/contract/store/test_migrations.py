"""A store that has lived: what an earlier version wrote down reads right after migrating."""

import json
from typing import Any

import pytest
import sqlalchemy as sa

from refill.domain.backfill import Status
from refill.domain.slice import SliceState
from refill.store import schema
from refill.store.cipher import AesCipher
from refill.store.port import Store
from refill.store.records import PackLimits
from tests.contract.store.conftest import KEY, Opener
from tests.contract.store.factories import done, finish

# As version 0002 wrote them: these stay as they are when the records change.
COLUMN = {"name": "id", "type": "bigint", "oid": 20, "not_null": True}
CATALOGUE = [
    {"schema_name": "public", "name": name, "columns": [COLUMN], "primary_key": ["id"]}
    for name in ("orders", "items")
]
SPEC = {
    "kind": "sink",
    "database_id": "d-1",
    "database_type": "postgres",
    "database_name": "shop",
    "table": CATALOGUE[0] | {"kind": "r", "unique_key": [], "parents": []},
    "columns": ["id"],
    "sort_columns": ["id"],
    "sink_type": "files",
    "sink_options": {"path": "out", "format": "parquet"},
}
AT = 1_700_000_000_000_000
TIMES = {"created_at": AT, "updated_at": AT}


@pytest.fixture
def lived(empty_opener: Opener) -> Store:
    """A store of version 0002, in which work is going on."""
    store = empty_opener()
    with store._backend.write() as connection:  # type: ignore[attr-defined]
        schema.upgrade(connection, "nothing", to="0002")
        for table, row in _rows():
            described = sa.Table(table, sa.MetaData(), autoload_with=connection)
            connection.execute(described.insert().values(row))
    return store


def test_databases_count_the_tables_of_the_catalogue_they_had(lived: Store) -> None:
    lived.migrate()
    assert {one.name: one.tables_count for one in lived.list_databases(1)} == {"shop": 2, "new": 0}
    shop = lived.get_database(1, "shop")
    assert shop.options == {"hostname": "h"}
    kept = lived.get_catalogue(shop.id)
    assert [table.full_name for table in kept.tables] == ["public.orders", "public.items"]
    assert [column.name for column in kept.tables[0].columns] == ["id"]
    assert kept.at == shop.catalogue_at is not None


def test_a_backfill_goes_on_where_it_was(lived: Store) -> None:
    lived.migrate()
    backfill = lived.get_backfill_by_uid(1, "b-1")
    assert (backfill.counters.slices_completed, backfill.counters.rows_delivered) == (1, 7)
    assert backfill.spec.table is not None
    assert backfill.spec.table.full_name == "public.orders"
    pack = lived.claim_pack("w", PackLimits(slots=1), 30)
    assert pack is not None
    assert [claimed.slice.attempt for claimed in pack.slices] == [2]
    assert finish(lived, pack, done).status is Status.COMPLETED
    assert {part.state for part in lived.list_slices(backfill.id).items} == {SliceState.COMPLETED}


def test_a_migrated_store_says_so_and_is_left_alone_the_next_time(lived: Store) -> None:
    assert lived.check()["schema"] == "0002"
    lived.migrate()
    assert lived.check()["schema"] == schema.HEAD
    before = lived.list_databases(1)
    lived.migrate()
    assert lived.list_databases(1) == before


def _rows() -> list[tuple[str, dict[str, Any]]]:
    return [
        ("teams", {"name": "default", "created_at": AT}),
        ("users", {"team_id": 1, "name": "owner", "role": "owner", "created_at": AT}),
        ("tallies", {"name": "claims", "value": 1}),
        ("tallies", {"name": "leases_lost"}),
        ("databases", _database("d-1", "shop", CATALOGUE) | {"catalogue_at": AT}),
        ("databases", _database("d-2", "new", [])),
        ("backfills", _backfill()),
        ("targets", {"key": "t", "fence": 1, "backfill_id": 1}),
        ("slices", _slice(0, "completed", rows_read=7, rows_delivered=7, ended_at=AT)),
        ("slices", _slice(1, "pending")),
    ]


def _database(uid: str, name: str, catalogue: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": uid,
        "team_id": 1,
        "name": name,
        "type": "postgres",
        "options": AesCipher(KEY).seal('{"hostname":"h"}', f"database {uid}"),
        "annotations": "{}",
        "replication_slots": "[]",
        "catalogue": json.dumps(catalogue),
        **TIMES,
    }


def _backfill() -> dict[str, Any]:
    return {
        "uid": "b-1",
        "team_id": 1,
        "kind": "sink",
        "pipeline_id": "s-1",
        "pipeline_name": "orders-out",
        "origin": "request",
        "status": "running",
        "spec": json.dumps(SPEC),
        "table": "public.orders",
        "order": "newest_first",
        "slices_planned": 0,
        "planned": True,
        "holds": '["public.orders"]',
        "seals": False,
        "shared_target": "t",
        "started_at": AT,
        **TIMES,
    }


def _slice(index: int, state: str, **changes: Any) -> dict[str, Any]:
    extent = {"kind": "keys", "lower": [str(index)], "upper": None, "lower_inclusive": False}
    return {
        "backfill_id": 1,
        "index": index,
        "extent": json.dumps(extent),
        "target": "t",
        "state": state,
        "attempt": 1,
        "queued_at": AT,
        **changes,
    }
