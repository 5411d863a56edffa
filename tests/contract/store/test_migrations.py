"""A store that has lived: what an earlier version wrote down reads right after migrating."""

import json
from typing import Any

import pytest
import sqlalchemy as sa

from refill.connectors.postgres.native import Pages
from refill.domain.backfill import Status
from refill.domain.slice import NativeExtent, SliceState
from refill.domain.spec import DatedRead, QueryRead, SinkSpec, TransferSpec
from refill.domain.table import Column, Comparison, Family, Keyless
from refill.store import schema
from refill.store.cipher import AesCipher
from refill.store.port import Store
from refill.store.records import PackLimits
from tests.contract.store.conftest import KEY, Opener
from tests.contract.store.factories import done, finish
from tests.specs import pg_column

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
QUERIED = {**COLUMN, "name": "who", "type": "citext", "oid": 16_400, "extension": "citext"}
QUERY = "select who from orders where day = :date"
DATED = {
    **{name: SPEC[name] for name in ("database_id", "database_type", "database_name", "columns")},
    **{name: SPEC[name] for name in ("table", "sink_type", "sink_options")},
    **{"kind": "transfer", "query": None, "date_column": "day", "timezone": "Europe/Helsinki"},
    **{"dates": ["2024-01-02", "2024-01-01"], "transfer_id": 1},
    **{"destination_id": 1, "destination_table": "daily", "sort_columns": []},
}
BY_QUERY = DATED | {
    "table": {"schema_name": "", "name": "query", "kind": "q", "columns": [QUERIED]},
    **{"query": QUERY, "columns": ["who"], "date_column": None},
}
DEFINITION = {"query": QUERY, "columns": [], "schedule": [], "extra": {"query_columns": [QUERIED]}}
PAGES = {"kind": "ctid", "relation": "public.t", "first_page": 3, "end_page": 7, "snapshot": "s"}
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
    assert kept.tables[0].columns == (pg_column("id", "bigint", 20, not_null=True),)
    assert kept.tables[0].keyless is Keyless.CUT
    assert kept.at == shop.catalogue_at is not None


def test_a_backfill_goes_on_where_it_was(lived: Store) -> None:
    lived.migrate()
    backfill = lived.get_backfill_by_uid(1, "b-1")
    assert (backfill.counters.slices_completed, backfill.counters.rows_delivered) == (1, 7)
    assert isinstance(backfill.spec, SinkSpec)
    assert (backfill.spec.sink_id, backfill.sort_columns) == ("s-1", ("id",))
    assert backfill.spec.read.table == lived.get_catalogue("d-1").tables[0]
    pack = lived.claim_pack("w", PackLimits(slots=1), 30)
    assert pack is not None
    assert [claimed.slice.attempt for claimed in pack.slices] == [2]
    assert finish(lived, pack, done).status is Status.COMPLETED
    assert {part.state for part in lived.list_slices(backfill.id).items} == {SliceState.COMPLETED}


def test_what_transfers_read_is_read_as_it_was(lived: Store) -> None:
    lived.migrate()
    dated = lived.get_backfill_by_uid(1, "b-2").spec
    assert isinstance(dated, TransferSpec)
    assert isinstance(dated.read, DatedRead)
    assert (dated.read.date_column, dated.read.timezone) == ("day", "Europe/Helsinki")
    assert [day.isoformat() for day in dated.dates] == ["2024-01-02", "2024-01-01"]
    assert (dated.destination_id, dated.destination_table, dated.transfer_id) == (1, "daily", 1)
    queried = lived.get_backfill_by_uid(1, "b-3").spec
    assert isinstance(queried.read, QueryRead)
    assert queried.read.query == QUERY
    (who,) = queried.read.fields
    assert (who.family, who.comparison) == (Family.TEXT, Comparison.SOURCE_ONLY)
    kept = lived.get_transfer(1, 1).extra["query_columns"]
    assert [Column.model_validate(column) for column in kept] == [who]


def test_pages_of_a_table_are_its_sources_own(lived: Store) -> None:
    lived.migrate()
    (pages,) = lived.list_slices(lived.get_backfill_by_uid(1, "b-4").id).items
    assert isinstance(pages.extent, NativeExtent)
    assert Pages.of(pages.extent) == Pages(
        relation="public.t", first_page=3, end_page=7, snapshot="s"
    )
    assert Pages.of(pages.extent).extent() == pages.extent


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
        ("destinations", _destination()),
        ("transfers", _transfer()),
        ("backfills", _backfill("b-2", DATED, status="completed")),
        ("backfills", _backfill("b-3", BY_QUERY, status="completed")),
        ("backfills", _backfill("b-4", SPEC, status="paused")),
        ("slices", _slice(0, "pending", backfill_id=4, extent=json.dumps(PAGES))),
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


def _destination() -> dict[str, Any]:
    sealed = AesCipher(KEY).seal("{}", "destination 1")
    return {"team_id": 1, "name": "lake", "type": "files", "options": sealed, **TIMES}


def _transfer() -> dict[str, Any]:
    return {
        "team_id": 1,
        "name": "daily",
        "database_id": "d-1",
        "destination_id": 1,
        "destination_table": "daily",
        "definition": json.dumps(DEFINITION),
        "scheduled": False,
        "paused": False,
        "created_user_id": 1,
        **TIMES,
    }


def _backfill(
    uid: str = "b-1", spec: dict[str, Any] = SPEC, status: str = "running"
) -> dict[str, Any]:
    return {
        "uid": uid,
        "team_id": 1,
        "kind": spec["kind"],
        "pipeline_id": "s-1" if spec["kind"] == "sink" else "1",
        "pipeline_name": "orders-out",
        "origin": "request",
        "status": status,
        "spec": json.dumps(spec),
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
