"""Retrying, pausing, resuming and cancelling backfills of transfers over HTTP."""

import httpx
import pytest

from tests.integration.transfers.stage import FAR_AHEAD, LONG_AGO, STAMP, Stage, answer, days


def test_a_failed_date_is_reported_and_alone_retried(stage: Stage, api: httpx.Client) -> None:
    made = stage.make_backfill(stage.make_transfer())
    bad = days("2024-01-02", "2024-01-04")
    stage.plan_and_run(fail=bad, error="x" * 3000)
    path = f"/backfills/{made['transfer_backfill_id']}"
    failed = answer(api.get(path))["data"]
    assert failed["status"] == "FAILED"
    assert failed["transfer_runs_failed"] == 2
    assert [item["transfer_run_date"] for item in failed["error_report"]] == [
        "2024-01-02",
        "2024-01-04",
    ]
    assert {len(item["error"]) for item in failed["error_report"]} == {1000}

    retried = answer(api.post(f"{path}/retries", json={"dates": ["2024-01-02"]}))["data"]
    assert retried["transfer_backfill_id"] == made["transfer_backfill_id"]
    assert retried["status"] == "SCHEDULED"
    assert stage.run() == days("2024-01-02")
    assert answer(api.get(path))["data"]["transfer_runs_failed"] == 1
    answer(api.post(f"{path}/retries"))
    assert stage.run() == days("2024-01-04")
    done = answer(api.get(path))["data"]
    assert (done["status"], done["error_report"]) == ("COMPLETED", [])


def test_a_backfill_that_could_not_be_planned_says_why_for_every_date(
    stage: Stage, api: httpx.Client
) -> None:
    made = stage.make_backfill(stage.make_transfer(), "2024-01-01", "2024-01-02")
    stage.fail_plan("PostgreSQL refused the password.")
    path = f"/backfills/{made['transfer_backfill_id']}"
    failed = answer(api.get(path))["data"]
    assert (failed["status"], failed["transfer_runs_failed"]) == ("FAILED", 2)
    assert failed["error_report"] == [
        {"transfer_run_date": "2024-01-01", "error": "PostgreSQL refused the password."},
        {"transfer_run_date": "2024-01-02", "error": "PostgreSQL refused the password."},
    ]
    again = {"range_start": "2024-01-01", "range_end": "2024-01-31", "only": "failed"}
    backfills = f"/transfers/{made['transfer_id']}/backfills"
    preview = api.post(backfills, json={**again, "dry_run": True})
    assert answer(preview)["data"]["transfer_runs_total"] == 2
    span = {"start_date": LONG_AGO, "end_date": FAR_AHEAD, "filter_issues_only": "true"}
    runs = answer(api.get(f"/transfers/{made['transfer_id']}/runs", params=span))["data"]
    assert {(run["status"], run["message"]) for run in runs} == {
        ("FAILED", "PostgreSQL refused the password.")
    }
    answer(api.get(f"/transfer_runs/{runs[0]['id']}"))
    answer(api.post(f"{path}/retries", json={}))
    assert len(stage.plan_and_run()) == 2
    assert answer(api.get(path))["data"]["status"] == "COMPLETED"


def test_a_backfill_that_could_not_be_planned_is_retried_whole(
    stage: Stage, api: httpx.Client
) -> None:
    made = stage.make_backfill(stage.make_transfer(), "2024-01-01", "2024-01-02")
    stage.fail_plan("PostgreSQL refused the password.")
    path = f"/backfills/{made['transfer_backfill_id']}/retries"
    refused = answer(api.post(path, json={"dates": ["2024-01-02"]}), 422)
    assert "failed before it had runs" in refused["error"]["description"]
    answer(api.post(path, json={"dates": ["2024-01-02", "2024-01-01"]}))
    assert len(stage.plan_and_run()) == 2


def test_only_a_failed_backfill_is_retried(stage: Stage, api: httpx.Client) -> None:
    made = stage.make_backfill(stage.make_transfer())
    path = f"/backfills/{made['transfer_backfill_id']}"
    refused = answer(api.post(f"{path}/retries", json={}), 422)
    assert "only a FAILED one" in refused["error"]["description"]
    stage.plan_and_run(fail=days("2024-01-02"))
    refused = answer(api.post(f"{path}/retries", json={"dates": ["2024-01-03"]}), 422)
    assert "2024-01-03 did not fail" in refused["error"]["description"]


def test_a_retry_is_refused_while_another_covers_the_dates(stage: Stage, api: httpx.Client) -> None:
    transfer = stage.make_transfer()
    first = stage.make_backfill(transfer)
    stage.plan_and_run(fail=days("2024-01-02"))
    second = stage.make_backfill(transfer, "2024-01-02", "2024-01-02")
    path = f"/backfills/{first['transfer_backfill_id']}/retries"
    refused = answer(api.post(path, json={}), 422)
    assert f"Backfill {second['transfer_backfill_id']} " in refused["error"]["description"]
    stage.plan_and_run()
    answer(api.post(path, json={}))
    stage.run()


def test_pause_and_resume(stage: Stage, api: httpx.Client) -> None:
    made = stage.make_backfill(stage.make_transfer())
    path = f"/backfills/{made['transfer_backfill_id']}"
    stage.plan()
    for _ in range(2):  # the same again changes nothing
        paused = answer(api.patch(path, json={"status": "PAUSED"}))["data"]
        assert paused["status"] == "SCHEDULED"
        assert STAMP.fullmatch(paused["paused_time"])
    assert stage.run() == []
    for _ in range(2):
        resumed = answer(api.patch(path, json={"status": "RUNNING"}))["data"]
        assert resumed["paused_time"] is None
    assert len(stage.run()) == 5


def test_cancelling_stops_what_is_pending_and_is_final(stage: Stage, api: httpx.Client) -> None:
    made = stage.make_backfill(stage.make_transfer())
    path = f"/backfills/{made['transfer_backfill_id']}"
    stage.plan()
    cancelled = answer(api.patch(path, json={"status": "CANCELLED"}))["data"]
    assert cancelled["status"] == "CANCELLED"
    assert STAMP.fullmatch(cancelled["end_time"])
    assert STAMP.fullmatch(cancelled["removed_time"])
    assert cancelled["removed_user_id"] == 1
    assert stage.run() == []
    for status in ("CANCELLED", "PAUSED", "RUNNING"):
        refused = answer(api.patch(path, json={"status": status}), 422)
        assert refused["error"]["code"] == "UNPROCESSABLE_ENTITY"
        assert "final" in refused["error"]["description"]
    assert answer(api.get(path))["data"]["status"] == "CANCELLED"


def test_a_completed_backfill_cannot_be_cancelled(stage: Stage, api: httpx.Client) -> None:
    made = stage.make_backfill(stage.make_transfer())
    stage.plan_and_run()
    path = f"/backfills/{made['transfer_backfill_id']}"
    answer(api.patch(path, json={"status": "CANCELLED"}), 422)


@pytest.mark.parametrize("status", ["CREATED", "SCHEDULED", "COMPLETED", "FAILED"])
def test_other_statuses_cannot_be_set(stage: Stage, api: httpx.Client, status: str) -> None:
    made = stage.make_backfill(stage.make_transfer())
    path = f"/backfills/{made['transfer_backfill_id']}"
    refused = answer(api.patch(path, json={"status": status}), 422)
    assert "set CANCELLED, PAUSED or RUNNING" in refused["error"]["description"]
    answer(api.patch(path, json={"status": "CANCELLED"}))
