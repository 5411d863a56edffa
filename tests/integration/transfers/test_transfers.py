"""Transfers, and what they are made of, over HTTP."""

from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest

from tests.integration.transfers.stage import ORDERS, SETTINGS, Stage, answer, problems

DATED = "select id, day from orders where day = :date"


def test_a_transfer_comes_back_as_it_was_sent(
    shared_stage: Stage, shared_api: httpx.Client
) -> None:
    account = {"account_id": "a-1", "login_id": 7, "data_source_username": "me"}
    body = shared_stage.transfer_body(
        settings={**SETTINGS, "columns": "id,day", "timezone": "Asia/Tokyo"},
        schedule=[
            {"run_interval": "daily", "run_hour": 22, "refresh_window": 3},
            {"run_interval": "weekly", "run_hour": 1, "run_weekday": 7},
        ],
        accounts=[account],
        schema_id=12,
        transfer_type=2,
        notification_recipients=["ops@example.com"],
    )
    made = answer(shared_api.post("/transfers", json=body), 201)["data"]
    assert made["transfer_name"] == body["display_name"]
    found = answer(shared_api.get(f"/transfers/{made['transfer_id']}"))
    assert "meta" not in found
    assert found["transfer_id"] == made["transfer_id"]
    assert found["display_name"] == body["display_name"]
    assert found["destination_id"] == body["destination_id"]
    assert found["accounts"] == [account]
    assert found["schema_id"] == 12
    assert found["transfer_type"] == 2
    assert found["notification_recipients"] == [{"email": "ops@example.com"}]
    assert found["schedule"] == [
        {"run_interval": "daily", "run_hour": 22, "refresh_window": 3},
        {"run_interval": "weekly", "run_hour": 1, "refresh_window": 1, "run_weekday": 7},
    ]
    assert found["data_source"]["data_source_id"] == body["data_source_id"]
    assert {item["field_id"]: item["value"] for item in found["data_source"]["settings"]} == {
        "table": "public.orders",
        "date_column": "day",
        "columns": "id, day",
        "timezone": "Asia/Tokyo",
        "destination_table": "orders",
        "max_rejects": 0,
    }


def test_what_comes_back_can_be_sent_again(shared_stage: Stage, shared_api: httpx.Client) -> None:
    body = shared_stage.transfer_body()
    made = answer(shared_api.post("/transfers", json=body), 201)["data"]["transfer_id"]
    found = answer(shared_api.get(f"/transfers/{made}"))
    again = {
        **body,
        "display_name": "another name",
        "data_source_settings": found["data_source"]["settings"],
        "schedule": found["schedule"],
    }
    changed = answer(shared_api.put(f"/transfers/{made}", json=again))
    assert changed == {"transfer_id": made, "transfer_name": "another name"}


def test_the_list_says_when_a_transfer_last_ran(stage: Stage, api: httpx.Client) -> None:
    transfer = stage.make_transfer()
    assert "run_date" not in answer(api.get("/transfers"))["data"][0]
    stage.make_backfill(transfer, "2024-01-01", "2024-01-02")
    stage.plan_and_run()
    (item,) = answer(api.get("/transfers"))["data"]
    assert item["run_date"] == stage.store.now().date().isoformat()


def test_a_setting_given_twice_is_a_problem_of_it(stage: Stage, api: httpx.Client) -> None:
    body = stage.transfer_body()
    body["data_source_settings"].append(body["data_source_settings"][0])
    name = body["data_source_settings"][0]["field_id"]
    assert problems(api, body) == {name: "notUnique"}
    answer(api.post("/transfers", json=body), 422)


def test_a_schedule_counts_from_when_it_was_made(stage: Stage, api: httpx.Client) -> None:
    body = stage.transfer_body()
    made = answer(api.post("/transfers", json=body), 201)["data"]["transfer_id"]
    answer(api.put(f"/transfers/{made}", json={**body, "display_name": "renamed"}))
    assert stage.store.get_transfer(1, made).schedule_fired_at is None
    daily = {**body, "schedule": [{"run_interval": "daily", "run_hour": 3}]}
    answer(api.put(f"/transfers/{made}", json=daily))
    stored = stage.store.get_transfer(1, made)
    assert stored.schedule_fired_at == stored.updated_at


def test_listed_paused_and_deleted(stage: Stage, api: httpx.Client) -> None:
    transfer = stage.make_transfer(
        schedule=[{"run_interval": "hourly"}], accounts=[{"account_id": "a"}]
    )
    (item,) = answer(api.get("/transfers"))["data"]
    assert item["dwh_transfer_id"] == transfer
    assert (item["state"], item["schedule"], item["accounts"]) == ("active", "hourly", ["a"])
    assert item["backfill"] is None
    assert item["destination"]["type"] == "files"
    for _ in range(2):
        paused = answer(api.put(f"/transfers/{transfer}/state", json={"transfer_state": "pause"}))
        assert paused == {"result": True, "state": "PAUSED"}
    made = stage.make_backfill(transfer)  # still possible
    (item,) = answer(api.get("/transfers"))["data"]
    assert item["state"] == "paused"
    assert item["backfill"]["transfer_backfill_id"] == made["transfer_backfill_id"]
    resumed = answer(api.put(f"/transfers/{transfer}/state", json={"transfer_state": "unpause"}))
    assert resumed["state"] == "ACTIVE"
    deleted = api.delete(f"/transfers/{transfer}")
    assert (deleted.status_code, deleted.content) == (204, b"")
    answer(api.get(f"/transfers/{transfer}"), 404)
    assert answer(api.get("/transfers"))["data"] == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {}),
        ({"display_name": " "}, {"display_name": "isEmpty"}),
        ({"data_source_id": "nowhere"}, {"data_source_id": "notFound"}),
        ({"destination_id": 999_999}, {"destination_id": "notFound"}),
        ({"settings": {}}, {"table": "isEmpty", "date_column": "isEmpty"}),
        ({"settings": {"table": "orders"}}, {"date_column": "isEmpty"}),
        ({"settings": {**SETTINGS, "date_column": "amount"}}, {"date_column": "invalid"}),
        ({"settings": {**SETTINGS, "date_column": "nope"}}, {"date_column": "notFound"}),
        ({"settings": {**SETTINGS, "columns": "id, nope"}}, {"columns": "notFound"}),
        ({"settings": {**SETTINGS, "columns": "id, id"}}, {"columns": "notUnique"}),
        ({"settings": {**SETTINGS, "columns": 5}}, {"columns": "invalid"}),
        ({"settings": {**SETTINGS, "timezone": "Mars/Olympus"}}, {"timezone": "invalid"}),
        ({"settings": {**SETTINGS, "timezone": "../../etc/passwd"}}, {"timezone": "invalid"}),
        ({"settings": {**SETTINGS, "colour": "red"}}, {"colour": "notAllowed"}),
        ({"settings": {**SETTINGS, "max_rejects": -1}}, {"max_rejects": "invalid"}),
        ({"settings": {**SETTINGS, "query": DATED}}, {"query": "notAllowed"}),
        (
            {"settings": {**SETTINGS, "destination_table": "../up"}},
            {"destination_table": "invalid"},
        ),
        ({"settings": {**SETTINGS, "destination_table": "_x"}}, {"destination_table": "invalid"}),
        ({"settings": {"query": DATED}}, {"destination_table": "isEmpty"}),
        ({"settings": {"query": DATED, "destination_table": "o"}}, {}),
        (
            {"settings": {"query": "select 1", "destination_table": "o"}},
            {"query": "invalid"},
        ),
        (
            {
                "settings": {
                    "query": "with x as (delete from orders returning *) select * from x "
                    "where day = :date",
                    "destination_table": "o",
                }
            },
            {"query": "invalid"},
        ),
        (
            {"settings": {**SETTINGS, "transform": "select nope from source"}},
            {"transform": "invalid"},
        ),
        (
            {"settings": {**SETTINGS, "transform": "select * from text.`/etc/passwd`"}},
            {"transform": "invalid"},
        ),
        (
            {
                "settings": {
                    **SETTINGS,
                    "transform": "select day, sum(amount) s from source group by 1",
                }
            },
            {},
        ),
        (
            {"schedule": [{"run_interval": "weekly", "run_hour": 24}]},
            {"schedule.0.run_hour": "invalid", "schedule.0.run_weekday": "isEmpty"},
        ),
        ({"schedule": [{"run_interval": "monthly"}]}, {"schedule.0.run_day": "isEmpty"}),
        (
            {"schedule": [{"run_interval": "daily", "refresh_window": 0}]},
            {"schedule.0.refresh_window": "invalid"},
        ),
    ],
)
def test_what_is_wrong_with_a_transfer(
    shared_stage: Stage,
    shared_api: httpx.Client,
    changes: dict[str, Any],
    expected: dict[str, str],
) -> None:
    assert problems(shared_api, shared_stage.transfer_body(**changes)) == expected


def test_two_transfers_may_not_share_a_name(shared_stage: Stage, shared_api: httpx.Client) -> None:
    name = answer(shared_api.get(f"/transfers/{shared_stage.make_transfer()}"))["display_name"]
    body = shared_stage.transfer_body(display_name=name)
    assert problems(shared_api, body) == {"display_name": "notUnique"}


def test_a_transfer_is_no_problem_for_itself(shared_stage: Stage, shared_api: httpx.Client) -> None:
    body = shared_stage.transfer_body()
    made = answer(shared_api.post("/transfers", json=body), 201)["data"]["transfer_id"]
    found = answer(shared_api.post(f"/transfers/{made}/validations", json=body))
    assert found == {"is_valid": True, "errors": []}


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"schedule": [{"run_interval": "yearly"}]}, 400),
        ({"data_source_settings": [{"value": 1}]}, 400),
        ({"data_source_settings": [{"field_id": "table", "value": [1]}]}, 400),
        ({"destination_id": "1"}, 400),
        ({"destination_id": 2**63}, 400),
        ({"schema_id": 2**63}, 400),
        ({"transfer_type": 20_000_000_000_000_000_000}, 400),
        ({"colour": "red"}, 422),
        ({"data_source_settings": [{"field_id": "table"}, {"field_id": "table"}]}, 422),
    ],
)
def test_a_transfer_that_cannot_be_read(
    shared_stage: Stage, shared_api: httpx.Client, change: dict[str, Any], status: int
) -> None:
    answer(shared_api.post("/transfers", json={**shared_stage.transfer_body(), **change}), status)


def test_with_the_source_down_an_unknown_table_is_accepted(
    shared_stage: Stage, shared_api: httpx.Client
) -> None:
    database = shared_stage.make_database(tables=())
    transfer = shared_stage.make_transfer(data_source_id=database.name)
    made = shared_stage.make_backfill(transfer)
    spec = shared_stage.store.get_backfill(1, made["transfer_backfill_id"]).spec
    assert (spec.read.name, spec.read.table.columns) == ("public.orders", ())


@pytest.fixture
def shop(postgres_url: str) -> Iterator[dict[str, Any]]:
    """A source that answers, with a table that no catalogue knows yet."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "create table orders (id bigint primary key, day date, amount numeric(12,2))"
        )
        info = connection.info
        yield {
            "hostname": info.host,
            "port": info.port,
            "database": info.dbname,
            "username": info.user,
            "password": "secret",
        }


@pytest.mark.postgres
def test_a_miss_is_looked_up_once_and_kept(
    shared_stage: Stage, shared_api: httpx.Client, shop: dict[str, Any]
) -> None:
    database = shared_stage.make_database(shop, tables=())
    shared_stage.make_transfer(data_source_id=database.name)
    kept = shared_stage.store.get_catalogue(database.id).tables
    assert [table.full_name for table in kept] == ["public.orders"]
    body = shared_stage.transfer_body(
        data_source_id=database.name, settings={**SETTINGS, "table": "nope"}
    )
    assert problems(shared_api, body) == {"table": "notFound"}


@pytest.mark.postgres
def test_a_query_is_described_by_the_source(
    shared_stage: Stage, shared_api: httpx.Client, shop: dict[str, Any]
) -> None:
    database = shared_stage.make_database(shop, tables=())
    settings = {
        "query": "select id, amount from orders where day = :date;",
        "destination_table": "o",
        "transform": "select id from source",
    }
    transfer = shared_stage.make_transfer(data_source_id=database.name, settings=settings)
    made = shared_stage.make_backfill(transfer)
    spec = shared_stage.store.get_backfill(1, made["transfer_backfill_id"]).spec
    assert spec.read.query == "select id, amount from orders where day = :date"
    assert [(column.name, column.native["oid"]) for column in spec.read.fields] == [
        ("id", 20),
        ("amount", 1700),
    ]
    for wrong, field in (
        ({**settings, "transform": "select nope from source"}, "transform"),
        ({**settings, "query": "select nope from orders where day = :date"}, "query"),
        ({**settings, "query": "select * from nowhere where day = :date"}, "query"),
    ):
        body = shared_stage.transfer_body(data_source_id=database.name, settings=wrong)
        assert field in problems(shared_api, body)


def test_available_sources_and_options(stage: Stage, api: httpx.Client) -> None:
    database = stage.make_database()
    destination = stage.make_destination()
    found = answer(api.get("/transfers/available-sources"))
    assert "meta" not in found
    (source,) = found["data_sources"]
    assert source["data_source_id"] == database.name
    assert {"files", "postgres"} <= set(source["applicable_destinations"])
    assert [item["destination_id"] for item in found["destinations"]] == [destination]
    files = next(item for item in found["destination_types"] if item["type"] == "files")
    assert {item["id"]: item["input_type"] for item in files["settings"]} == {
        "path": "text",
        "format": "select",
    }
    chosen = {"source_id": database.name, "destination_id": destination}
    options = answer(api.get("/transfers/available-options", params=chosen))
    assert "meta" not in options
    assert "table" in {item["field_id"] for item in options["data_source"]["settings"]}
    (schema,) = options["schemas"]
    assert schema["tables"] == [
        {
            "table": "public.orders",
            "columns": [column.name for column in ORDERS.columns],
            "date_columns": ["day", "at"],
        }
    ]
    assert [item["run_interval"] for item in options["schedule_options"]] == [
        "hourly",
        "daily",
        "weekly",
        "monthly",
    ]
    unknown = {**chosen, "source_id": "nowhere"}
    answer(api.get("/transfers/available-options", params=unknown), 422)


def test_a_data_source_connection_is_the_database(stage: Stage, api: httpx.Client) -> None:
    database = stage.make_database()
    body = {"data_source_id": database.name, "destination_type": "files"}
    made = answer(api.post("/data-source-connections", json=body), 201)["data"]
    assert made == {"connection_id": database.id, "login_url": None, "connect_url": None}
    answer(api.post("/data-source-connections", json={**body, "data_source_id": "x"}), 422)
    answer(api.post("/data-source-connections", json={**body, "destination_type": "x"}), 422)


@pytest.mark.postgres
def test_a_backfill_freezes_the_columns_that_are_there_now(
    stage: Stage, api: httpx.Client, postgres_url: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id bigint PRIMARY KEY, day date, added text)")
        info = connection.info
        place = {
            "hostname": info.host,
            "port": info.port,
            "database": info.dbname,
            "username": info.user,
            "password": info.password,
        }
    database = stage.make_database(place)  # stored as ORDERS, which it was once
    made = stage.make_backfill(stage.make_transfer(data_source_id=database.name))
    spec = stage.store.get_backfill(1, made["transfer_backfill_id"]).spec
    assert spec.read.columns == ("id", "day", "added")
