"""Destinations over HTTP."""

from typing import Any

import httpx
import psycopg
import pytest

from tests.integration.transfers.stage import Stage, answer

LAKE = {"type": "files", "display_name": "lake", "fields": {"path": "lake"}}


def test_a_destination_is_made_listed_changed_and_deleted(stage: Stage, api: httpx.Client) -> None:
    made = answer(api.post("/destinations", json={**LAKE, "auth_method": "NONE"}), 201)["data"]
    assert made["display_name"] == "lake"
    assert made["auth_method"] == "NONE"
    assert made["destination_type"]["type"] == "files"
    assert {item["id"]: item["value"] for item in made["edit_settings"]} == {
        "path": "lake",
        "format": "parquet",
    }
    path = f"/destinations/{made['id']}"
    assert answer(api.get(path))["data"] == made
    assert answer(api.get("/destinations"))["data"] == [
        {"id": made["id"], "display_name": "lake", "type": "files"}
    ]
    changed = {**LAKE, "display_name": "sea", "fields": {"path": "sea", "format": "jsonl"}}
    answered = answer(api.put(path, json=changed))["data"]
    assert answered["display_name"] == "sea"
    assert {item["value"] for item in answered["edit_settings"]} == {"sea", "jsonl"}
    usage = answer(api.get(f"{path}/usage"))["data"]
    assert usage == {"is_used": False, "transfers": []}
    deleted = api.delete(path)
    assert (deleted.status_code, deleted.content) == (204, b"")
    answer(api.get(path), 404)


def test_usage_names_the_transfers(stage: Stage, api: httpx.Client) -> None:
    body = stage.transfer_body()
    transfer = answer(api.post("/transfers", json=body), 201)["data"]["transfer_id"]
    usage = answer(api.get(f"/destinations/{body['destination_id']}/usage"))["data"]
    assert usage == {
        "is_used": True,
        "transfers": [{"transfer_id": transfer, "transfer_name": body["display_name"]}],
    }
    refused = answer(api.delete(f"/destinations/{body['destination_id']}"), 409)
    assert str(transfer) in refused["error"]["description"]


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"type": "tape"}, 422, "files"),
        ({"fields": {}}, 422, "fields.path"),
        ({"fields": {"path": "/etc"}}, 422, "fields.path"),
        ({"fields": {"path": "a/../../b"}}, 422, "fields.path"),
        ({"fields": {"path": "x", "format": "xml"}}, 422, "fields.format"),
        ({"fields": {"path": "x", "colour": "red"}}, 422, "fields.colour"),
        ({"fields": {"path": [1]}}, 400, "fields.path"),
        ({"fields": "path"}, 400, "fields"),
        ({"display_name": ""}, 400, "display_name"),
        ({"colour": "red"}, 422, "colour"),
    ],
)
def test_a_destination_that_is_refused(
    shared_api: httpx.Client, change: dict[str, Any], status: int, words: str
) -> None:
    refused = answer(shared_api.post("/destinations", json={**LAKE, **change}), status)
    assert words in refused["error"]["description"]


def test_two_destinations_may_not_share_a_name(stage: Stage, api: httpx.Client) -> None:
    answer(api.post("/destinations", json=LAKE), 201)
    refused = answer(api.post("/destinations", json=LAKE), 422)
    assert "called lake already" in refused["error"]["description"]


def test_the_type_of_a_destination_does_not_change(stage: Stage, api: httpx.Client) -> None:
    made = answer(api.post("/destinations", json=LAKE), 201)["data"]["id"]
    answer(api.put(f"/destinations/{made}", json={**LAKE, "type": "postgres"}), 422)


def warehouse(**fields: Any) -> dict[str, Any]:
    return {
        "type": "postgres",
        "display_name": "warehouse",
        "fields": {
            "hostname": "127.0.0.1",
            "database": "w",
            "username": "writer",
            "password": "hunter2",
            "schema": "public",
            **fields,
        },
    }


def test_a_secret_never_comes_back_and_stays_when_left_out(stage: Stage, api: httpx.Client) -> None:
    response = api.post("/destinations", json=warehouse())
    made = answer(response, 201)["data"]
    path = f"/destinations/{made['id']}"
    settings = {item["id"]: item for item in made["edit_settings"]}
    assert settings["password"]["value"] is None
    assert settings["password"]["input_type"] == "password"
    assert settings["schema"]["value"] == "public"
    assert settings["port"]["value"] == 5432
    changed = warehouse()
    del changed["fields"]["password"]
    for answered in (response, api.get(path), api.put(path, json=changed)):
        assert "hunter2" not in answered.text
    assert stage.store.get_destination(1, made["id"]).options["password"] == "hunter2"
    answer(api.put(path, json={**changed, "new_password": "tiger3"}))
    assert stage.store.get_destination(1, made["id"]).options["password"] == "tiger3"


def test_only_what_is_written_is_frozen(stage: Stage, api: httpx.Client) -> None:
    made = answer(api.post("/destinations", json=warehouse()), 201)["data"]["id"]
    backfill = stage.make_backfill(stage.make_transfer(destination_id=made))
    spec = stage.store.get_backfill(1, backfill["transfer_backfill_id"]).spec
    assert spec.sink_options["schema"] == "public"
    assert not {"hostname", "username", "password"} & set(spec.sink_options)


def test_files_can_be_tested_before_they_are_made(stage: Stage, api: httpx.Client) -> None:
    tested = answer(api.post("/destinations/test-connection", json=LAKE))["data"]
    assert tested == {"success": True, "error": None}


@pytest.mark.postgres
def test_a_database_can_be_tested_with_the_stored_secret(
    stage: Stage, api: httpx.Client, postgres_url: str
) -> None:
    with psycopg.connect(postgres_url) as connection:
        info = connection.info
        place = {
            "hostname": info.host,
            "port": info.port,
            "database": info.dbname,
            "username": info.user,
        }
    path = "/destinations/test-connection"
    wrong = answer(api.post(path, json=warehouse(**place)))["data"]
    assert wrong["success"] is False
    assert wrong["error"]
    assert answer(api.post(path, json=warehouse(**place, password="secret")))["data"]["success"]
    body = warehouse(**place, password="secret")
    made = answer(api.post("/destinations", json=body), 201)["data"]["id"]
    del body["fields"]["password"]
    tested = answer(api.post(path, json={**body, "destination_id": made}))["data"]
    assert tested == {"success": True, "error": None}


def test_a_destination_does_not_move_to_where_another_transfer_writes(
    stage: Stage, api: httpx.Client
) -> None:
    first, second = stage.transfer_body(), stage.transfer_body()
    for body in (first, second):
        answer(api.post("/transfers", json=body), 201)
    taken = stage.store.get_destination(1, first["destination_id"]).options["path"]
    moved = {**LAKE, "fields": {"path": taken}}
    refused = answer(api.put(f"/destinations/{second['destination_id']}", json=moved), 422)
    assert "choose another place" in refused["error"]["description"]
    answer(api.put(f"/destinations/{second['destination_id']}", json=LAKE))
