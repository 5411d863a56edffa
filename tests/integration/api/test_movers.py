"""What clients of the original send and read, beyond the calls that every client makes."""

from typing import Any

import httpx
import psycopg
import pytest

from tests.integration.api.running import NOBODY, Running, answer
from tests.servers.postgres import PostgresServer

DATABASES = "/api/postgres_databases"
ENDPOINTS = "/api/destinations/http_endpoints"
KAFKA = {"type": "kafka", "hosts": "b-1.example:9098", "topic": "orders", "tls": True}
SIGNED = {
    "sasl_mechanism": "aws_msk_iam",
    "aws_region": "eu-west-1",
    "aws_access_key_id": "AKIAEXAMPLE",
    "aws_secret_access_key": "hush-hush",
}


def test_active_backfills_are_objects(server: Running, api: httpx.Client) -> None:
    path, made = server.make_backfill(api)
    sink = answer(api.get(path.removesuffix("/backfills")), 200)
    assert [one["id"] for one in sink["active_backfills"]] == [made["id"]]
    assert sink["active_backfills"][0]["state"] == "active"
    assert sink["active_backfills"][0]["rows_processed_count"] == 0


def test_a_sink_says_the_batch_size_in_use(server: Running, api: httpx.Client) -> None:
    assert server.make_sink(api)["batch_size"] == 1
    hook = {"type": "webhook", "url": "https://hooks.example/in"}
    assert server.make_sink(api, destination=hook)["batch_size"] == 100
    assert server.make_sink(api, destination=hook, batch_size=7)["batch_size"] == 7
    assert server.make_sink(api, destination={**hook, "batch": False})["batch_size"] == 1


def test_a_sink_may_be_sent_back_as_it_was_read(server: Running, api: httpx.Client) -> None:
    path, _ = server.make_backfill(api)
    path = path.removesuffix("/backfills")
    shown = answer(api.get(path), 200)
    back = answer(api.put(path, json=shown), 200)
    changing = ("updated_at", "active_backfills")
    assert {name: value for name, value in back.items() if name not in changing} == {
        name: value for name, value in shown.items() if name not in changing
    }
    assert len(back["active_backfills"]) == 1


def test_a_database_may_be_sent_back_as_it_was_read(server: Running, api: httpx.Client) -> None:
    primary = {**NOBODY, "hostname": "primary.example", "ssl": True, "ipv6": False}
    kept = {"ipv6": True, "pool_size": 3, "queue_interval": 70, "queue_target": 80}
    made = server.make_database(api, primary=primary, **kept)
    assert {name: made[name] for name in kept} == kept
    assert made["primary"] == {n: v for n, v in primary.items() if n != "password"}
    path = f"{DATABASES}/{made['name']}"
    back = answer(api.put(path, json=made), 200)
    assert {**back, "updated_at": ""} == {**made, "updated_at": ""}
    stored = server.store.get_database(1, made["id"])
    assert stored.extra["primary"]["password"] == NOBODY["password"]
    assert stored.options["password"] == NOBODY["password"]
    assert answer(api.patch(path, json={"primary": None}), 200)["primary"] is None
    plain = server.make_database(api)
    assert (plain["pool_size"], plain["queue_interval"], plain["queue_target"]) == (10, 1000, 50)


def test_an_endpoint_may_be_sent_back_and_lists_its_headers(
    server: Running, api: httpx.Client
) -> None:
    pairs = [{"key": "X-House", "value": "atreides"}]
    asked = {
        "name": server.name("hook"),
        "url": "https://hooks.example/in",
        "headers": pairs,
        "encrypted_headers": [{"key": "X-Secret", "value": "hush"}],
    }
    made = answer(api.post(ENDPOINTS, json=asked), 200)
    assert made["headers"] == {"X-House": "atreides"}
    path = f"{ENDPOINTS}/{made['id']}"
    answer(api.put(path, json=made), 200)
    assert server.store.get_endpoint(1, made["id"]).encrypted_headers == {"X-Secret": "hush"}
    assert answer(api.put(path, json={"headers": None}), 200)["headers"] == {}
    none = {**asked, "name": server.name("hook"), "headers": None, "encrypted_headers": None}
    assert answer(api.post(ENDPOINTS, json=none), 200)["headers"] == {}
    wrong = {**asked, "name": "never", "headers": [{"name": "a", "value": "b"}]}
    assert "headers" in answer(api.post(ENDPOINTS, json=wrong), 422)["validation_errors"]


def test_an_unknown_database_or_endpoint_of_a_sink_is_404(
    server: Running, api: httpx.Client
) -> None:
    sends = {"type": "webhook", "http_endpoint": "nobody"}
    asked = {"name": "never", "database": "nowhere", "destination": sends}
    assert "`database`" in answer(api.post("/api/sinks", json=asked), 404)["summary"]
    asked["database"] = server.make_database(api)["name"]
    assert "`http_endpoint`" in answer(api.post("/api/sinks", json=asked), 404)["summary"]


def test_a_database_is_connected_to_before_it_is_made(
    server: Running, api: httpx.Client, postgres: PostgresServer
) -> None:
    refusal = answer(api.post(DATABASES, json={"name": "never", **NOBODY}), 422)
    assert "cannot be used" in refusal["summary"]
    assert refusal["code"] == "connection_failed"
    wrong = {"name": "never", "url": postgres.url().replace("secret", "wr0ng-one")}
    said = api.post(DATABASES, json=wrong)
    assert "password" in answer(said, 422)["summary"]
    assert "wr0ng-one" not in said.text
    answer(api.get(f"{DATABASES}/never"), 404)
    made = {"name": server.name("db"), "url": postgres.create_database(), "ssl": False}
    answer(api.post(DATABASES, json=made), 201)


@pytest.mark.parametrize("field", ["hostname", "port", "database", "username", "password"])
def test_a_url_beside_another_connection_field_is_422(api: httpx.Client, field: str) -> None:
    body = {"name": "never", "url": "postgresql://u:p@h/db", field: NOBODY[field]}
    refusal = answer(api.post(DATABASES, json=body), 422)
    assert field in refusal["validation_errors"]["url"][0]


def test_the_older_names_of_a_sinks_parts_are_understood(
    server: Running, api: httpx.Client
) -> None:
    sends = {"type": "redis", "host": "127.0.0.1", "port": 6379, "stream_key": "orders"}
    sink = server.make_sink(api, source=None, table="public.orders", destination=sends)
    assert sink["destination"]["type"] == "redis_stream"
    assert sink["source"]["include_tables"] == ["public.orders"]
    again = answer(api.patch(f"/api/sinks/{sink['id']}", json={"destination": sends}), 200)
    assert again["destination"] == sink["destination"]
    text = {"type": "redis_string", "host": "127.0.0.1", "mode": "dynamic"}
    sink = server.make_sink(api, source=None, schema="public", destination=text)
    assert sink["destination"]["mode"] == "dynamic"
    assert sink["source"]["include_schemas"] == ["public"]


def test_a_kafka_sink_may_be_signed_by_aws(server: Running, api: httpx.Client) -> None:
    made = server.make_sink(api, destination={**KAFKA, **SIGNED})
    assert made["destination"]["aws_region"] == "eu-west-1"
    assert made["destination"]["aws_secret_access_key"] == "**********"
    asked = {"name": "never", "database": made["database"]}
    for missing in ("aws_region", "aws_access_key_id", "aws_secret_access_key"):
        fields = {name: value for name, value in SIGNED.items() if name != missing}
        answer(api.post("/api/sinks", json={**asked, "destination": {**KAFKA, **fields}}), 422)
    plain = {**KAFKA, **SIGNED, "tls": False}
    answer(api.post("/api/sinks", json={**asked, "destination": plain}), 422)


def initial(server: Running, api: httpx.Client, database: str, wanted: Any) -> dict[str, Any]:
    sink = server.make_sink(api, database=database, source=None, initial_backfill=wanted)
    return {one["table"]: one for one in sink["active_backfills"]}


def test_an_initial_backfill_names_tables_and_their_bounds(
    server: Running, api: httpx.Client, postgres: PostgresServer
) -> None:
    url = postgres.create_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE a (id int PRIMARY KEY, at timestamptz); CREATE TABLE b ()")
    database = server.make_database(api, url=url)["name"]
    for nothing in (None, False, []):
        assert initial(server, api, database, nothing) == {}
    assert set(initial(server, api, database, [{"table": "public.a"}])) == {"public.a"}
    part = {
        "table": "a",
        "type": "partial",
        "sort_column": "at",
        "start_position": "2025-01-01T00:00:00Z",
    }
    made = initial(server, api, database, [part])["public.a"]
    assert made["sort_column"] == "at"
    frozen = server.store.get_backfill_by_uid(1, made["id"]).spec.read
    assert frozen.start_position == "2025-01-01T00:00:00Z"  # type: ignore[union-attr]
    asked = {"name": "never", "database": database, "destination": {"type": "files", "path": "n"}}
    for wrong in ("yes", [{"type": "full"}], [{**part, "sort_column": None}], [{"table": "no"}]):
        answer(api.post("/api/sinks", json={**asked, "initial_backfill": wrong}), 422)
    answer(api.get("/api/sinks/never"), 404)
