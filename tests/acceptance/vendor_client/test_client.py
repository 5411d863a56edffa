"""The vendor's published client, unmodified, sync and async, against a running server.

It parses silently: a missing field becomes UNSET and a wrong envelope an empty object. So every
test here looks at the parsed fields.
"""

import datetime
from typing import Any
from uuid import UUID

import pytest
from supermetrics._generated.supermetrics_api_client.models.transfer_account import TransferAccount
from supermetrics._generated.supermetrics_api_client.models.transfer_data_source_setting import (
    TransferDataSourceSetting,
)
from supermetrics._generated.supermetrics_api_client.models.transfer_schedule import (
    TransferSchedule,
)
from supermetrics.exceptions import (
    SupermetricsAPIError,
    SupermetricsNotFoundError,
)

from tests.acceptance.vendor_client.calling import SHORT, TEAM, Call, caller
from tests.integration.transfers.stage import FAR_AHEAD, LONG_AGO, Stage, days

JANUARY = (datetime.date(2024, 1, 1), datetime.date(2024, 1, 31))


def transfer_arguments(stage: Stage, **settings: Any) -> dict[str, Any]:
    wanted = {"table": "orders", "date_column": "day", **settings}
    return {
        "team_id": TEAM,
        "data_source_id": stage.make_database().name,
        "schema_id": 4,
        "destination_id": stage.make_destination(),
        "display_name": "Orders by day",
        "schedule": [TransferSchedule(run_interval="daily", run_hour=22, refresh_window=2)],
        "accounts": [TransferAccount(account_id="main", login_id=3)],
        "data_source_settings": [
            TransferDataSourceSetting(field_id=name, value=value) for name, value in wanted.items()
        ],
        "notification_recipients": ["ops@example.com"],
    }


def test_backfills(stage: Stage, call: Call) -> None:
    transfer = stage.make_transfer()
    made = call("backfills.create", TEAM, transfer, *JANUARY)
    assert isinstance(made.transfer_backfill_id, int)
    assert made.transfer_id == transfer
    assert (made.range_start_date, made.range_end_date) == JANUARY
    assert made.created_time.tzinfo is not None
    assert made.created_user_id == 1
    assert made.status == "CREATED"
    assert made.transfer_runs_total == 31
    assert (made.transfer_runs_created, made.transfer_runs_completed) == (0, 0)
    assert made.transfer_runs_failed == 0
    assert made.error_report == []
    for name in ("removed_time", "removed_user_id", "start_time", "end_time"):
        assert getattr(made, name) is None
    assert made.additional_properties["progress"] == 0.0

    place = (TEAM, made.transfer_backfill_id)
    stage.plan()
    scheduled = call("backfills.get", *place)
    assert (scheduled.status, scheduled.transfer_runs_created) == ("SCHEDULED", 31)
    assert [item.transfer_backfill_id for item in call("backfills.list_incomplete", TEAM)] == [
        made.transfer_backfill_id
    ]
    stage.run(fail=days("2024-01-15"), error="Connection timeout to data source")
    failed = call("backfills.get_latest", TEAM, transfer)
    assert failed.status == "FAILED"
    assert (failed.transfer_runs_completed, failed.transfer_runs_failed) == (30, 1)
    assert isinstance(failed.start_time, datetime.datetime)
    assert isinstance(failed.end_time, datetime.datetime)
    (problem,) = failed.error_report
    assert problem.transfer_run_date == datetime.date(2024, 1, 15)
    assert problem.error == "Connection timeout to data source"

    cancelled = call("backfills.cancel", *place)
    assert cancelled.status == "CANCELLED"
    assert isinstance(cancelled.removed_time, datetime.datetime)
    assert cancelled.removed_user_id == 1
    assert call("backfills.list_incomplete", TEAM) == []


def test_a_paused_backfill_is_one_that_the_client_can_read(stage: Stage, call: Call) -> None:
    made = stage.make_backfill(stage.make_transfer())
    with stage.client() as client:
        client.patch(f"/backfills/{made['transfer_backfill_id']}", json={"status": "PAUSED"})
    paused = call("backfills.get", TEAM, made["transfer_backfill_id"])
    assert paused.status == "SCHEDULED"
    assert paused.additional_properties["paused_time"]


def test_transfers(stage: Stage, call: Call) -> None:
    arguments = transfer_arguments(stage)
    checked = call("transfers.validate", **arguments)
    assert (checked.is_valid, checked.errors) == (True, [])
    made = call("transfers.create", **arguments)
    assert isinstance(made.transfer_id, int)
    assert made.transfer_name == "Orders by day"

    found = call("transfers.get", TEAM, made.transfer_id)
    assert found.transfer_id == made.transfer_id
    assert found.display_name == "Orders by day"
    assert found.schema_id == 4
    assert found.destination_id == arguments["destination_id"]
    assert [account.account_id for account in found.accounts] == ["main"]
    assert [account.login_id for account in found.accounts] == [3]
    assert found.segments == []
    (schedule,) = found.schedule
    assert (schedule.run_interval, schedule.run_hour, schedule.refresh_window) == ("daily", 22, 2)
    assert found.data_source.data_source_id == arguments["data_source_id"]
    assert found.data_source.service_name == "PostgreSQL"
    settings = {item.field_id: item.value for item in found.data_source.settings}
    assert settings["table"] == "public.orders"
    assert settings["date_column"] == "day"
    assert [item.email for item in found.notification_recipients] == ["ops@example.com"]

    (item,) = call("transfers.list", TEAM)
    assert item.dwh_transfer_id == made.transfer_id
    assert (item.display_name, item.state, item.schedule) == (
        "Orders by day",
        "active",
        "daily",
    )
    assert item.accounts == ["main"]
    assert item.destination["id"] == arguments["destination_id"]

    changed = {**arguments, "display_name": "Orders, renamed"}
    assert (
        call("transfers.validate_update", transfer_id=made.transfer_id, **changed).is_valid is True
    )
    renamed = call("transfers.update", transfer_id=made.transfer_id, **changed)
    assert (renamed.transfer_id, renamed.transfer_name) == (
        made.transfer_id,
        "Orders, renamed",
    )

    paused = call("transfers.set_state", TEAM, made.transfer_id, "pause")
    assert (paused.result, paused.state) == (True, "PAUSED")
    assert call("transfers.set_state", TEAM, made.transfer_id, "unpause").state == "ACTIVE"
    assert call("transfers.delete", TEAM, made.transfer_id) is None
    assert call("transfers.list", TEAM) == []


def test_validation_names_fields_and_codes(stage: Stage, call: Call) -> None:
    arguments = transfer_arguments(stage, date_column="amount")
    checked = call("transfers.validate", **{**arguments, "display_name": ""})
    assert checked.is_valid is False
    assert {(item.field_id, item.error_code) for item in checked.errors} == {
        ("display_name", "isEmpty"),
        ("date_column", "invalid"),
    }


def test_what_a_transfer_is_made_of(stage: Stage, call: Call) -> None:
    database, destination = stage.make_database(), stage.make_destination()
    available = call("transfers.list_available_sources", TEAM)
    assert [source.data_source_id for source in available.data_sources] == [database.name]
    assert "files" in available.data_sources[0].applicable_destinations
    assert [item.destination_id for item in available.destinations] == [destination]
    assert "postgres" in {item.type_ for item in available.destination_types}
    options = call("transfers.get_available_options", TEAM, database.name, destination)
    assert options.data_source.data_source_id == database.name
    assert options.schemas[0]["tables"][0]["table"] == "public.orders"
    assert options.schedule_options[0]["run_interval"] == "hourly"
    made = call("transfers.create_datasource_connection", TEAM, database.name, "files")
    assert made.connection_id == UUID(database.id)
    assert (made.login_url, made.connect_url) == (None, None)


def test_runs(stage: Stage, call: Call) -> None:
    transfer = stage.make_transfer()
    stage.make_backfill(transfer, "2024-01-01", "2024-01-03")
    stage.plan_and_run(fail=days("2024-01-02"), rows=12, error="The disk is full.")
    runs = call(
        "transfers.list_runs",
        TEAM,
        transfer,
        LONG_AGO,
        FAR_AHEAD,
        sort_field="data_date",
        sort_direction="ASC",
    )
    assert [run.data_date.day for run in runs] == [1, 2, 3]
    first, second, _ = runs
    assert (first.status, first.type_, first.total_rows) == ("COMPLETED", "Backfill", 12)
    assert first.total_duration == 0.5
    assert first.message == ""
    assert isinstance(first.created_time, datetime.datetime)
    assert isinstance(first.ended_time, datetime.datetime)
    assert (second.status, second.message) == ("FAILED", "The disk is full.")
    issues = call(
        "transfers.list_runs",
        TEAM,
        transfer,
        # without a zone, as the vendor's own example has it
        datetime.datetime(2000, 1, 1),
        datetime.datetime(2100, 1, 1),
        filter_issues_only=True,
        limit=10,
        offset=0,
    )
    assert [run.id for run in issues] == [second.id]

    detail = call("transfer_runs.get", TEAM, first.id)
    assert (detail.id, detail.status, detail.total_rows) == (first.id, "COMPLETED", 12)
    assert detail.data_date == datetime.date(2024, 1, 1)
    assert isinstance(detail.started_time, datetime.datetime)
    assert isinstance(detail.queued_time, datetime.datetime)
    assert isinstance(detail.external_id, str)
    assert (detail.query_amount, detail.failed_query_amount) == (1, 0)
    (query,) = detail.query_details
    assert (query.status, query.rows, query.duration) == ("COMPLETED", 12, 0.5)
    assert query.error_description is None


def test_recurring_runs(stage: Stage, call: Call) -> None:
    transfer = stage.make_transfer(schedule=[{"run_interval": "hourly", "refresh_window": 2}])
    later = stage.store.now() + datetime.timedelta(hours=2)
    (fired,) = stage.service.schedules.fire_due(later)
    assert stage.service.schedules.fire_due(later) == []
    stage.plan_and_run()
    runs = call("transfers.list_runs", TEAM, transfer, LONG_AGO, FAR_AHEAD)
    assert [run.type_ for run in runs] == ["Recurring", "Recurring"]
    assert {run.data_date for run in runs} == {
        later.date() - datetime.timedelta(days=back) for back in (1, 2)
    }
    assert call("backfills.list_incomplete", TEAM) == []
    with pytest.raises(SupermetricsNotFoundError):
        call("backfills.get_latest", TEAM, transfer)
    assert fired.created_user_id == 1


def test_destinations(stage: Stage, call: Call) -> None:
    fields = {
        "hostname": "127.0.0.1",
        "port": 5432,
        "database": "warehouse",
        "username": "writer",
        "password": "hunter2",
        "schema": "public",
    }
    made = call(
        "destinations.create", TEAM, "postgres", "Warehouse", fields, auth_method="PASSWORD"
    )
    assert isinstance(made.id, int)
    assert made.display_name == "Warehouse"
    assert (made.destination_type.type_, made.destination_type.title) == ("postgres", "PostgreSQL")
    settings = {item.id: item for item in made.edit_settings}
    assert settings["hostname"].value == "127.0.0.1"
    assert settings["hostname"].is_required is True
    assert settings["port"].value == 5432
    assert settings["ssl"].value is False
    assert (settings["password"].value, settings["password"].input_type) == (None, "password")

    (item,) = call("destinations.list", TEAM)
    assert (item.id, item.display_name, item.type_) == (made.id, "Warehouse", "postgres")
    assert call("destinations.get", TEAM, made.id).display_name == "Warehouse"
    changed = call(
        "destinations.update",
        TEAM,
        made.id,
        "postgres",
        "Warehouse 2",
        {**fields, "schema": "facts"},
        new_password="tiger3",
    )
    assert changed.display_name == "Warehouse 2"
    assert {item.id: item.value for item in changed.edit_settings}["schema"] == "facts"
    usage = call("destinations.get_usage", TEAM, made.id)
    assert (usage.is_used, usage.transfers) == (False, [])
    tested = call("destinations.test_connection", TEAM, "files", "Lake", {"path": "lake"})
    assert (tested.success, tested.error) == (True, None)
    refused = call("destinations.test_connection", TEAM, "postgres", "W", {**fields, "port": 1})
    assert refused.success is False
    assert isinstance(refused.error, str)
    assert call("destinations.delete", TEAM, made.id) is None
    assert call("destinations.list", TEAM) == []


def test_a_destination_in_use(stage: Stage, call: Call) -> None:
    arguments = transfer_arguments(stage)
    made = call("transfers.create", **arguments)
    usage = call("destinations.get_usage", TEAM, arguments["destination_id"])
    assert usage.is_used is True
    assert [(item.transfer_id, item.transfer_name) for item in usage.transfers] == [
        (made.transfer_id, "Orders by day")
    ]
    with pytest.raises(SupermetricsAPIError) as caught:
        call("destinations.delete", TEAM, arguments["destination_id"])
    assert (caught.value.status_code, caught.value.error_code) == (409, "CONFLICT_ERROR")


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_an_idempotency_key_goes_through_the_client(stage: Stage, colour: str) -> None:
    transfer = stage.make_transfer()
    call = caller(stage, colour)
    headers = {"Idempotency-Key": "once"}
    first = call("backfills.create", TEAM, transfer, *SHORT, headers=headers)
    second = call("backfills.create", TEAM, transfer, *SHORT, headers=headers)
    assert first.transfer_backfill_id == second.transfer_backfill_id
