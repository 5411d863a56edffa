"""The vendor's published client, unmodified, sync and async, against a running server.

It parses silently: a missing field becomes UNSET and a wrong envelope an empty object. So every
test here looks at the parsed fields.
"""

import asyncio
import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from supermetrics import SupermetricsAsyncClient, SupermetricsClient
from supermetrics._generated.supermetrics_api_client.models.transfer_account import TransferAccount
from supermetrics._generated.supermetrics_api_client.models.transfer_data_source_setting import (
    TransferDataSourceSetting,
)
from supermetrics._generated.supermetrics_api_client.models.transfer_schedule import (
    TransferSchedule,
)
from supermetrics.exceptions import (
    SupermetricsAPIError,
    SupermetricsAuthError,
    SupermetricsForbiddenError,
    SupermetricsNotFoundError,
    SupermetricsRateLimitError,
    SupermetricsServerError,
    SupermetricsValidationError,
)

from refill.domain.access import Scope
from refill.domain.errors import StoreBusy
from tests.integration.transfers.stage import FAR_AHEAD, LONG_AGO, Stage, days, running_stage

TEAM = 1
JANUARY = (datetime.date(2024, 1, 1), datetime.date(2024, 1, 31))
SHORT = (datetime.date(2024, 1, 1), datetime.date(2024, 1, 3))

# client.backfills.create(…) in both colours: call("backfills.create", …)
Call = Callable[..., Any]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with running_stage(tmp_path) as running:
        yield running


def caller(stage: Stage, colour: str, token: str | None = None) -> Call:
    """Each call with a client of its own, so that the asynchronous one has a loop of its own."""
    options = {"api_key": token or stage.token, "base_url": stage.url, "timeout": 60}

    def call(name: str, *args: Any, **more: Any) -> Any:
        noun, verb = name.split(".")
        with SupermetricsClient(**options) as client:
            return getattr(getattr(client, noun), verb)(*args, **more)

    def call_async(name: str, *args: Any, **more: Any) -> Any:
        noun, verb = name.split(".")

        async def run() -> Any:
            async with SupermetricsAsyncClient(**options) as client:
                return await getattr(getattr(client, noun), verb)(*args, **more)

        return asyncio.run(run())

    return call if colour == "sync" else call_async


@pytest.fixture(params=["sync", "async"])
def call(stage: Stage, request: pytest.FixtureRequest) -> Call:
    return caller(stage, request.param)


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
    assert (item.display_name, item.state, item.schedule) == ("Orders by day", "active", "daily")
    assert item.accounts == ["main"]
    assert item.destination["id"] == arguments["destination_id"]

    changed = {**arguments, "display_name": "Orders, renamed"}
    assert (
        call("transfers.validate_update", transfer_id=made.transfer_id, **changed).is_valid is True
    )
    renamed = call("transfers.update", transfer_id=made.transfer_id, **changed)
    assert (renamed.transfer_id, renamed.transfer_name) == (made.transfer_id, "Orders, renamed")

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


def test_errors_are_the_clients_own(
    stage: Stage, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    transfer = stage.make_transfer()

    def raised(kind: type[SupermetricsAPIError], name: str, *args: Any) -> SupermetricsAPIError:
        with pytest.raises(kind) as caught:
            call(name, *args)
        assert caught.value.request_id
        return caught.value

    error = raised(
        SupermetricsValidationError, "backfills.create", TEAM, transfer, *reversed(SHORT)
    )
    assert (error.status_code, error.error_code) == (422, "UNPROCESSABLE_ENTITY")
    assert "swap them" in error.message
    error = raised(SupermetricsNotFoundError, "backfills.create", TEAM, 999_999, *SHORT)
    assert (error.status_code, error.error_code) == (404, "NOT_FOUND")
    error = raised(SupermetricsNotFoundError, "backfills.get", TEAM, 999_999)
    assert error.error_code == "NOT_FOUND"
    error = raised(SupermetricsNotFoundError, "backfills.get", 2, 1)
    assert error.error_code == "NOT_FOUND"
    error = raised(SupermetricsNotFoundError, "backfills.get_latest", TEAM, transfer)
    assert error.error_code == "NOT_FOUND"
    error = raised(SupermetricsValidationError, "backfills.get", TEAM, 2**63)
    assert (error.status_code, error.error_code) == (400, "BAD_REQUEST")
    made = call("backfills.create", TEAM, transfer, *SHORT)
    error = raised(SupermetricsValidationError, "backfills.create", TEAM, transfer, *SHORT)
    assert f"Backfill {made.transfer_backfill_id} " in error.message
    call("backfills.cancel", TEAM, made.transfer_backfill_id)
    error = raised(SupermetricsValidationError, "backfills.cancel", TEAM, made.transfer_backfill_id)
    assert (error.status_code, error.error_code) == (422, "UNPROCESSABLE_ENTITY")

    def busy(*args: object, **options: object) -> None:
        raise StoreBusy("The store is locked; try again.")

    monkeypatch.setattr(stage.store, "list_backfills", busy)
    error = raised(SupermetricsServerError, "backfills.list_incomplete", TEAM)
    assert (error.status_code, error.error_code) == (503, "SERVICE_UNAVAILABLE")
    assert error.retry_after is not None


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_errors_of_keys(stage: Stage, colour: str) -> None:
    wrong = caller(stage, colour, "rf_0123456789ab_" + "a" * 43)
    with pytest.raises(SupermetricsAuthError) as unauthenticated:
        wrong("backfills.list_incomplete", TEAM)
    assert unauthenticated.value.error_code == "API_KEY_INVALID"
    reader = caller(stage, colour, stage.make_token(Scope.TRANSFERS_READ))
    assert reader("backfills.list_incomplete", TEAM) == []
    with pytest.raises(SupermetricsForbiddenError) as forbidden:
        reader("backfills.create", TEAM, 1, *SHORT)
    assert forbidden.value.error_code == "FORBIDDEN"


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_the_rate_is_limited(tmp_path: Path, colour: str) -> None:
    with running_stage(tmp_path, rate_limit_per_hour=1) as stage:
        call = caller(stage, colour)
        call("backfills.list_incomplete", TEAM)
        with pytest.raises(SupermetricsRateLimitError) as limited:
            call("backfills.list_incomplete", TEAM)
        assert limited.value.error_code == "TOO_MANY_REQUESTS"
        assert limited.value.retry_after is not None
        assert 1 <= limited.value.retry_after <= 3600


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_an_idempotency_key_goes_through_the_client(stage: Stage, colour: str) -> None:
    transfer = stage.make_transfer()
    call = caller(stage, colour)
    headers = {"Idempotency-Key": "once"}
    first = call("backfills.create", TEAM, transfer, *SHORT, headers=headers)
    second = call("backfills.create", TEAM, transfer, *SHORT, headers=headers)
    assert first.transfer_backfill_id == second.transfer_backfill_id
