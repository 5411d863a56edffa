"""Sinks that deliver all their tables as soon as they are made."""

from datetime import UTC, datetime
from typing import Any

import httpx
import psycopg

from tests.integration.api.running import Running, answer
from tests.servers.postgres import PostgresServer


def test_an_initial_backfill_starts_one_per_table(
    server: Running, api: httpx.Client, database_url: str
) -> None:
    database = server.make_database(api, url=database_url)
    sink = server.make_sink(
        api, database=database["name"], source={"exclude_tables": ["heap"]}, initial_backfill=True
    )
    path = f"/api/sinks/{sink['name']}/backfills"
    tables = {one["table"] for one in answer(api.get(path), 200)["data"]}
    # tables only: a view has to be asked for, with a column to go by
    expected = {"public.orders", "public.lines", "public.codes", "other place.Mixed Case"}
    assert tables == expected
    assert len(sink["active_backfills"]) == 4


def test_an_initial_backfill_delivers_no_row_twice(
    server: Running, api: httpx.Client, postgres: PostgresServer
) -> None:
    url = postgres.create_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE logs (id int PRIMARY KEY) PARTITION BY RANGE (id);"
            "CREATE TABLE logs_1 PARTITION OF logs FOR VALUES FROM (0) TO (10);"
            "CREATE TABLE places (id int); CREATE TABLE cities () INHERITS (places);"
        )
    database = server.make_database(api, url=url)["name"]
    sink = server.make_sink(api, database=database, source={"include_schemas": ["public"]})
    # one partition can be asked for by its name
    answer(api.post(f"/api/sinks/{sink['id']}/backfills", json={"table": "logs_1"}), 200)

    def initial(**source: Any) -> set[str]:
        made = server.make_sink(api, database=database, source=source, initial_backfill=True)
        found = answer(api.get(f"/api/sinks/{made['id']}/backfills"), 200)["data"]
        return {one["table"] for one in found}

    assert initial(include_schemas=["public"]) == {"public.logs", "public.places"}
    assert initial(exclude_tables=["logs", "places"]) == {"public.cities"}


def test_an_initial_backfill_that_is_refused_leaves_nothing_behind(
    server: Running, api: httpx.Client, database: dict[str, Any]
) -> None:
    body = {
        "name": server.name("half"),
        "database": database["name"],
        "destination": {"type": "files", "path": "x"},
        "filter": [{"column_name": "region", "operator": "=", "comparison_value": "r1"}],
        "initial_backfill": True,
    }
    before = answer(api.get("/api/backfills"), 200)["data"]
    refusal = answer(api.post("/api/sinks", json=body), 422)
    (problem,) = refusal["validation_errors"]["filter"]
    assert "Mixed Case" in problem  # the first table without that column
    answer(api.get(f"/api/sinks/{body['name']}"), 404)
    assert answer(api.get("/api/backfills"), 200)["data"] == before


def test_an_initial_backfill_of_tables_that_nobody_knows_is_422(
    server: Running, api: httpx.Client
) -> None:
    body = {
        "name": server.name("blind"),
        "database": server.make_database(api)["name"],
        "destination": {"type": "files", "path": "x"},
        "initial_backfill": True,
    }
    refusal = answer(api.post("/api/sinks", json=body), 422)
    assert "cannot be listed now" in refusal["validation_errors"]["initial_backfill"][0]
    answer(api.get(f"/api/sinks/{body['name']}"), 404)


def test_an_initial_backfill_lists_the_tables_when_none_are_known(
    server: Running, api: httpx.Client, database_url: str
) -> None:
    database = server.make_database(api, url=database_url)
    server.store.save_catalogue(database["id"], (), datetime.now(UTC))
    sink = server.make_sink(api, database=database["name"], source={}, initial_backfill=True)
    assert len(sink["active_backfills"]) == 5
