"""Sinks and backfills against the tables of a real database."""

from typing import Any

import httpx
import psycopg
import pytest

from tests.integration.api.running import Running, answer
from tests.servers.postgres import PostgresServer, free_port


@pytest.fixture
def everything(server: Running, api: httpx.Client, database: dict[str, Any]) -> str:
    """The path of the backfills of a sink over all tables."""
    sink = server.make_sink(api, database=database["name"], source={})
    return f"/api/sinks/{sink['name']}/backfills"


def test_the_catalogue_is_read_when_the_database_is_added(database: dict[str, Any]) -> None:
    assert database["tables_count"] == 6
    assert database["tables_refreshed_at"] is not None


@pytest.mark.parametrize(
    ("table", "sort_column"),
    [
        ("orders", "id"),
        ("public.orders", "id"),
        ("lines", "a,b"),
        ("codes", "code"),
        ("heap", None),
        ("other place.Mixed Case", "id"),
    ],
)
def test_a_backfill_goes_by_the_key_of_its_table(
    api: httpx.Client, everything: str, table: str, sort_column: str | None
) -> None:
    made = answer(api.post(everything, json={"table": table}), 200)
    assert made["sort_column"] == sort_column
    assert made["table"] == (table if "." in table else f"public.{table}")


def test_it_freezes_the_columns_and_their_types(
    server: Running, api: httpx.Client, everything: str
) -> None:
    made = answer(api.post(everything, json={"table": "orders"}), 200)
    spec = server.store.get_backfill_by_uid(1, made["id"]).spec
    assert spec.read.columns == ("id", "region", "amount", "placed")
    assert [column.native["oid"] for column in spec.read.table.columns] == [20, 25, 1700, 1184]
    assert "path" in spec.sink_options
    assert spec.message["consumer"]["name"] == made["sink_consumer"]
    assert "secret" not in spec.model_dump_json()


def test_an_unknown_table_is_422(api: httpx.Client, everything: str) -> None:
    refusal = answer(api.post(everything, json={"table": "nothing"}), 422)
    assert "no table public.nothing" in refusal["validation_errors"]["table"][0]


def test_a_table_made_later_is_found_by_a_live_look(
    server: Running, api: httpx.Client, everything: str, database_url: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE later (id uuid PRIMARY KEY)")
        made = answer(api.post(everything, json={"table": "later"}), 200)
        assert made["sort_column"] == "id"
        connection.execute("DROP TABLE later")


def test_a_table_outside_the_sinks_source_is_422(
    server: Running, api: httpx.Client, database: dict[str, Any]
) -> None:
    for source in (
        {"include_tables": ["lines"]},
        {"exclude_tables": ["public.orders"]},
        {"include_schemas": ["other place"]},
        {"exclude_schemas": ["public"]},
    ):
        sink = server.make_sink(api, database=database["id"], source=source)
        path = f"/api/sinks/{sink['id']}/backfills"
        refusal = answer(api.post(path, json={"table": "orders"}), 422)
        assert "not among the sink's tables" in refusal["validation_errors"]["table"][0]


def test_the_table_may_be_left_out_only_where_there_is_one(
    server: Running, api: httpx.Client, database: dict[str, Any]
) -> None:
    one = server.make_sink(api, database=database["id"], source={"include_tables": ["lines"]})
    made = answer(api.post(f"/api/sinks/{one['id']}/backfills"), 200)
    assert made["table"] == "public.lines"
    for source in (
        {"include_tables": ["lines", "orders"]},
        {"include_schemas": ["other place"]},
        {},
    ):
        many = server.make_sink(api, database=database["id"], source=source)
        refusal = answer(api.post(f"/api/sinks/{many['id']}/backfills"), 422)
        assert "required" in refusal["validation_errors"]["table"][0]


@pytest.mark.parametrize(
    ("body", "field", "problem"),
    [
        ({"table": "orders", "sort_column": "nope"}, "sort_column", "no column nope"),
        ({"table": "heap", "sort_column": "doc"}, "sort_column", "no order"),
        ({"table": "recent"}, "sort_column", "a view"),
        ({"table": "lines", "start_position": "1"}, "sort_column", "several columns"),
        ({"table": "heap", "end_position": "1"}, "sort_column", "no key"),
        ({"table": "orders", "start_position": "abc"}, "start_position", "whole number"),
        (
            {"table": "orders", "start_position": 9, "end_position": 8},
            "start_position",
            "after the end",
        ),
        ({"table": "orders", "max_rows_per_second": 0}, "max_rows_per_second", "greater than"),
        ({"table": ""}, "table", "at least 1"),
        ({"table": 5}, "table", "string"),
    ],
)
def test_what_cannot_be_read_that_way_is_422_on_its_field(
    api: httpx.Client, everything: str, body: dict[str, Any], field: str, problem: str
) -> None:
    refusal = answer(api.post(everything, json=body), 422)
    assert problem in refusal["validation_errors"][field][0]


def test_a_partial_backfill_keeps_its_bounds(
    server: Running, api: httpx.Client, everything: str
) -> None:
    body = {
        "table": "recent",
        "sort_column": "placed",
        "start_position": "2024-01-01",
        "end_position": "2024-02-01",
        "max_rows_per_second": 100,
        "reason": "january was wrong",
    }
    made = answer(api.post(everything, json=body), 200)
    assert made["sort_column"] == "placed"
    assert made["reason"] == "january was wrong"
    spec = server.store.get_backfill_by_uid(1, made["id"]).spec
    assert (spec.read.start_position, spec.read.end_position) == ("2024-01-01", "2024-02-01")
    assert spec.max_rows_per_second == 100


def test_a_dry_run_creates_nothing_and_shows_the_slices(api: httpx.Client, everything: str) -> None:
    body = {"table": "orders", "dry_run": True}
    shown = answer(api.post(everything, json=body), 200)
    assert shown["dry_run"] is True
    assert shown["table"] == "public.orders"
    assert shown["sort_column"] == "id"
    assert 90_000 < shown["estimated_rows"] < 110_000
    assert shown["slices_total"] == len(shown["slices"]) > 1
    assert shown["slices"][0]["lower"] is None
    assert shown["slices"][-1]["upper"] is None
    assert shown["blocked_by"] is None
    assert answer(api.get(everything), 200) == {"data": []}
    first = answer(api.post(everything, json={"table": "orders"}), 200)
    assert answer(api.post(everything, json=body), 200)["blocked_by"] == first["id"]


def test_a_dry_run_of_composite_keys_and_of_tables_without_a_key(
    api: httpx.Client, everything: str
) -> None:
    lines = answer(api.post(everything, json={"table": "lines", "dry_run": True}), 200)
    assert lines["sort_column"] == "a,b"
    heap = answer(api.post(everything, json={"table": "heap", "dry_run": True}), 200)
    assert heap["sort_column"] is None
    assert heap["slices"][0]["kind"] == "pages"


def test_filters_are_checked_against_the_columns(
    server: Running, api: httpx.Client, database: dict[str, Any]
) -> None:
    def attempt(*conditions: dict[str, Any], **changes: Any) -> httpx.Response:
        body = {
            "name": server.name("filtered"),
            "database": database["name"],
            "destination": {"type": "files", "path": "x"},
            "source": {"include_tables": ["orders"]},
            "filter": list(conditions),
            **changes,
        }
        return api.post("/api/sinks", json=body)

    fine = {"column_name": "region", "operator": "in", "comparison_value": ["r1", "r2"]}
    sink = answer(attempt(fine, {"column_name": "amount", "operator": "is not null"}), 200)
    assert sink["filter"][0] == {**fine, "field_path": None}
    for condition, problem in (
        ({"column_name": "nope", "operator": "=", "comparison_value": 1}, "no column nope"),
        ({"column_name": "id", "operator": "in", "comparison_value": 1}, "a list"),
        ({"column_name": "id", "operator": "in", "comparison_value": []}, "a list"),
        ({"column_name": "id", "operator": "="}, "one plain"),
        ({"column_name": "id", "operator": "=", "comparison_value": {}}, "one plain"),
        ({"column_name": "id", "operator": "is null", "comparison_value": 1}, "takes no"),
    ):
        refusal = answer(attempt(condition), 422)
        assert problem in refusal["validation_errors"]["filter"][0]
    unknown = {"column_name": "id", "operator": "like", "comparison_value": "x"}
    answer(attempt(unknown), 422)
    nowhere = {"column_name": "nope", "operator": "is null"}
    refusal = answer(attempt(nowhere, source={}), 422)
    assert "none of the sink's tables" in refusal["validation_errors"]["filter"][0]


def test_a_filter_over_a_schema_is_checked_again_for_each_backfill(
    server: Running, api: httpx.Client, database: dict[str, Any]
) -> None:
    sink = server.make_sink(
        api,
        database=database["name"],
        source={"include_schemas": ["public"]},
        filter=[{"column_name": "region", "operator": "=", "comparison_value": "r1"}],
    )
    path = f"/api/sinks/{sink['name']}/backfills"
    answer(api.post(path, json={"table": "orders"}), 200)
    refusal = answer(api.post(path, json={"table": "lines"}), 422)
    assert "no column 'region'" in refusal["validation_errors"]["filter"][0]


@pytest.mark.parametrize(
    "sql",
    [
        "selec id from source",
        "select id, nope from source",
        "select region from source",
        "select * from text.`/etc/passwd`",
        "select id, reflect('java.lang.System', 'exit') from source",
        "insert overwrite directory '/tmp/x' select * from source",
        "set spark.x = 1",
        "select id, sum(amount) from source group by id",
        "select id from source; select 1",
    ],
)
def test_sql_that_does_not_parse_or_tries_a_way_in_is_422_at_creation(
    server: Running, api: httpx.Client, database: dict[str, Any], sql: str
) -> None:
    body = {
        "name": server.name("shaped"),
        "database": database["name"],
        "destination": {"type": "files", "path": "x"},
        "source": {"include_tables": ["orders"]},
        "transform": {"sql": sql},
    }
    refusal = answer(api.post("/api/sinks", json=body), 422)
    assert refusal["validation_errors"]["transform"]


def test_sql_is_kept_and_can_be_taken_away(
    server: Running, api: httpx.Client, database: dict[str, Any]
) -> None:
    sql = "select id, upper(region) as region from source"
    sink = server.make_sink(
        api,
        database=database["name"],
        source={"include_tables": ["orders"]},
        transform={"sql": sql},
    )
    assert sink["transform"] == {"sql": sql}
    path = f"/api/sinks/{sink['id']}"
    assert answer(api.patch(path, json={"name": sink["name"]}), 200)["transform"] == {"sql": sql}
    assert answer(api.patch(path, json={"transform": "none"}), 200)["transform"] == "none"


def test_a_sink_that_names_a_table_that_is_not_there_is_422(
    server: Running, api: httpx.Client, database: dict[str, Any]
) -> None:
    def refusal(**changes: Any) -> dict[str, list[str]]:
        body = {
            "name": server.name("lost"),
            "database": database["name"],
            "destination": {"type": "files", "path": "x"},
            **changes,
        }
        errors: dict[str, list[str]] = answer(api.post("/api/sinks", json=body), 422)[
            "validation_errors"
        ]
        return errors

    assert "no table" in refusal(source={"include_tables": ["nope"]})["source.include_tables"][0]
    assert "no table" in refusal(source={}, tables=[{"name": "nope"}])["tables"][0]
    outside = refusal(source={"include_tables": ["orders"]}, tables=[{"name": "lines"}])
    assert "not among" in outside["tables"][0]
    groups = refusal(tables=[{"name": "orders", "group_column_names": ["id", "nope"]}])
    assert "no column nope" in groups["tables"][0]


def test_a_filter_compares_with_a_number_of_any_length(
    server: Running, api: httpx.Client, database: dict[str, Any]
) -> None:
    long = 20_000_000_000_000_000_000
    asked = [{"column_name": "amount", "operator": "<", "comparison_value": long}]
    sink = server.make_sink(
        api, database=database["name"], filter=asked, annotations={"number": long}
    )
    shown = answer(api.get(f"/api/sinks/{sink['id']}"), 200)
    assert shown["filter"][0]["comparison_value"] == long
    assert shown["annotations"] == {"number": long}
    answer(api.post(f"/api/sinks/{sink['id']}/backfills"), 200)


def test_a_backfill_freezes_the_columns_that_are_there_now(
    server: Running, api: httpx.Client, postgres: PostgresServer
) -> None:
    url = postgres.create_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY)")
        database = server.make_database(api, url=url)
        sink = server.make_sink(api, database=database["name"])
        connection.execute("ALTER TABLE orders ADD COLUMN note text")
        made = answer(api.post(f"/api/sinks/{sink['id']}/backfills"), 200)
    frozen = server.store.get_backfill_by_uid(1, made["id"]).spec.read.table
    assert frozen is not None
    assert [column.name for column in frozen.columns] == ["id", "note"]
    assert server.store.get_catalogue(database["id"]).tables == (frozen,)


def test_a_backfill_goes_by_the_stored_table_while_the_source_is_away(
    server: Running, api: httpx.Client, database_url: str
) -> None:
    database = server.make_database(api, url=database_url)
    sink = server.make_sink(api, database=database["name"])
    elsewhere = {"port": free_port(), "password": "any"}
    answer(api.patch(f"/api/postgres_databases/{database['id']}", json=elsewhere), 200)
    made = answer(api.post(f"/api/sinks/{sink['id']}/backfills"), 200)
    frozen = server.store.get_backfill_by_uid(1, made["id"]).spec.read.table
    assert frozen is not None
    assert len(frozen.columns) == 4
