"""Databases over HTTP."""

from typing import Any

import httpx
import psycopg
import pytest

from tests.integration.api.running import NOBODY, Running, answer
from tests.servers.postgres import PostgresServer, free_port

PATH = "/api/postgres_databases"


def test_a_database_comes_back_without_its_password(server: Running, api: httpx.Client) -> None:
    slots = [{"publication_name": "pub", "slot_name": "slot"}]
    body = {"name": server.name("db"), **NOBODY, "annotations": {"a": 1}}
    made = answer(api.post(PATH, json={**body, "test": False, "replication_slots": slots}), 201)
    assert made["hostname"] == "127.0.0.1"
    assert made["annotations"] == {"a": 1}
    slot = made["replication_slots"][0]
    assert (slot["publication_name"], slot["slot_name"]) == ("pub", "slot")
    assert slot["status"] == "active"
    assert slot["id"]
    one = api.get(f"{PATH}/{made['name']}")
    assert answer(one, 200) == made
    everything = api.get(PATH)
    assert made in answer(everything, 200)["data"]
    assert NOBODY["password"] not in one.text + everything.text


def test_a_url_is_parsed_into_typed_fields_and_nothing_else_is_kept(
    server: Running, api: httpx.Client
) -> None:
    url = (
        f"postgres://us%40er:p%2Fw@127.0.0.1:{free_port()}/my%20db"
        "?sslmode=require&options=-csearch_path%3Dx&service=y&passfile=z"
    )
    body = {"name": server.name("db"), "url": url, "test": False}
    made = answer(api.post(PATH, json=body), 201)
    assert made["username"] == "us@er"
    assert made["database"] == "my db"
    assert made["ssl"] is True
    stored = server.store.get_database(1, made["id"]).options
    assert stored["password"] == "p/w"
    text = str(stored)
    assert not any(word in text for word in ("search_path", "service", "passfile"))


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("mysql://u:p@h/db", "postgresql://"),
        ("postgresql:///db?host=/var/run", "host"),
        ("postgresql://u:p@%2Fvar%2Frun/db", "host"),
        ("postgresql://u:p@h:notaport/db", "cannot be read"),
    ],
)
def test_a_url_that_is_no_address_is_422(api: httpx.Client, url: str, problem: str) -> None:
    refusal = answer(api.post(PATH, json={"name": "x", "url": url}), 422)
    assert problem in refusal["validation_errors"]["url"][0]


def test_missing_fields_are_named(api: httpx.Client) -> None:
    refusal = answer(api.post(PATH, json={"name": "x", "hostname": "h"}), 422)
    assert refusal["validation_errors"]["database"] == ["is required"]
    assert refusal["validation_errors"]["username"] == ["is required"]


@pytest.mark.parametrize(
    "changes",
    [
        {"port": "5432"},
        {"port": 0},
        {"ssl": "yes"},
        {"hostname": "a,b"},
        {"hostname": "/var/run"},
        {"table": "orders"},
        {"passfile": "/etc/x"},
        {"name": "a/b"},
        {"name": ""},
        {"name": "01a1e13f-585f-7f58-98a6-ea13c0675731"},
        {"use_local_tunnel": True},
        {"replication_slots": [{"slot_name": "x"}]},
    ],
)
def test_fields_that_make_no_sense_are_422(api: httpx.Client, changes: dict[str, Any]) -> None:
    refusal = answer(api.post(PATH, json={"name": "never", **NOBODY, **changes}), 422)
    assert refusal["validation_errors"]


def test_a_name_is_taken_once_in_a_team(server: Running, api: httpx.Client) -> None:
    made = server.make_database(api)
    refusal = answer(api.post(PATH, json={"name": made["name"], **NOBODY, "test": False}), 422)
    assert "name" in refusal["validation_errors"]
    other = server.make_team()
    with server.client(server.make_token(team_id=other)) as elsewhere:
        body = {"name": made["name"], **NOBODY, "test": False}
        answer(elsewhere.post(PATH, json=body), 201)


def test_an_update_leaves_what_is_not_given(server: Running, api: httpx.Client) -> None:
    made = server.make_database(api)
    changed = answer(api.put(f"{PATH}/{made['id']}", json={"username": "writer"}), 200)
    assert changed["username"] == "writer"
    assert changed["hostname"] == made["hostname"]
    # what was read can be sent back: the mask keeps the secret
    answer(api.patch(f"{PATH}/{made['id']}", json={"password": changed["password"]}), 200)
    assert server.store.get_database(1, made["id"]).options["password"] == NOBODY["password"]
    answer(api.patch(f"{PATH}/{made['id']}", json={"password": "new"}), 200)
    assert server.store.get_database(1, made["id"]).options["password"] == "new"


def test_a_delete_is_refused_while_a_sink_reads_it(server: Running, api: httpx.Client) -> None:
    sink = server.make_sink(api)
    refusal = answer(api.delete(f"{PATH}/{sink['database']}"), 422)
    assert "delete them first" in refusal["summary"]
    assert (refusal["success"], refusal["error"]) == (False, refusal["summary"])
    answer(api.delete(f"/api/sinks/{sink['id']}"), 200)
    gone = answer(api.delete(f"{PATH}/{sink['database']}"), 200)
    assert gone["success"] is True
    answer(api.get(f"{PATH}/{gone['id']}"), 404)


def test_a_connection_that_works_and_tables_that_are_read_again(
    server: Running, api: httpx.Client, postgres_url: str
) -> None:
    made = server.make_database(api, url=postgres_url)
    path = f"{PATH}/{made['name']}"
    assert answer(api.post(f"{path}/test_connection"), 200) == {"success": True}
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE fresh (id int PRIMARY KEY)")
    assert answer(api.post(f"{path}/refresh_tables"), 200) == {"success": True}
    shown = answer(api.get(path), 200)
    assert shown["tables_count"] == 1
    # a list says the same of it
    assert shown in answer(api.get(PATH), 200)["data"]


def test_a_connection_that_does_not_work_says_why(
    server: Running, api: httpx.Client, postgres: PostgresServer
) -> None:
    down = server.make_database(api)
    for call in ("test_connection", "refresh_tables"):
        failed = answer(api.post(f"{PATH}/{down['id']}/{call}"), 422)
        assert failed["success"] is False
        assert "connect" in failed["reason"].lower()
    url = postgres.url().replace("secret", "wr0ng-one")
    wrong = server.make_database(api, url=url, test=False)
    failed = answer(api.post(f"{PATH}/{wrong['id']}/test_connection"), 422)
    assert "password" in failed["reason"]
    assert "wr0ng-one" not in failed["reason"]


def test_the_same_idempotency_key_makes_one_database(server: Running, api: httpx.Client) -> None:
    body = {"name": server.name("db"), **NOBODY, "test": False}
    headers = {"Idempotency-Key": server.name("key")}
    first = answer(api.post(PATH, json=body, headers=headers), 201)
    assert answer(api.post(PATH, json=body, headers=headers), 201) == first
