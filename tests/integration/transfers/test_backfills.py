"""Backfills of transfers over HTTP, against a running server and its store."""

import re
from datetime import date
from typing import Any

import httpx

from refill.domain.pipeline import Kind
from refill.domain.slice import Reject
from tests.integration.transfers.stage import FAR_AHEAD, LONG_AGO, STAMP, Stage, answer, days


def post(api: httpx.Client, transfer: int, **body: Any) -> httpx.Response:
    return api.post(f"/transfers/{transfer}/backfills", json=body)


def test_a_new_backfill_has_every_field_of_the_original(stage: Stage, api: httpx.Client) -> None:
    transfer = stage.make_transfer()
    made = answer(post(api, transfer, range_start="2024-01-01", range_end="2024-01-31"))
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,50}", made["meta"]["request_id"])
    data = made["data"]
    assert STAMP.fullmatch(data.pop("created_time"))
    assert data.pop("transfer_backfill_id") > 0
    assert data == {
        "transfer_id": transfer,
        "range_start_date": "2024-01-01",
        "range_end_date": "2024-01-31",
        "created_user_id": 1,
        "removed_time": None,
        "removed_user_id": None,
        "start_time": None,
        "end_time": None,
        "status": "CREATED",
        "transfer_runs_total": 31,
        "transfer_runs_created": 0,
        "transfer_runs_completed": 0,
        "transfer_runs_failed": 0,
        "error_report": [],
        "progress": 0.0,
        "rows_total": 0,
        "rows_rejected": 0,
        "rows_per_second": None,
        "eta_seconds": None,
        "paused_time": None,
        "reason": None,
    }


def test_it_freezes_what_it_runs(stage: Stage) -> None:
    transfer = stage.make_transfer(
        settings={
            "table": "public.orders",
            "date_column": "at",
            "timezone": "Europe/Helsinki",
            "columns": "id, amount",
            "transform": "select id, amount * 2 as amount from source",
            "destination_table": "twice",
            "max_rejects": 3,
        }
    )
    made = stage.make_backfill(transfer, "2024-01-01", "2024-01-03")
    spec = stage.store.get_backfill(1, made["transfer_backfill_id"]).spec
    assert spec.kind is Kind.TRANSFER
    assert [column.native["oid"] for column in spec.read.table.columns] == [
        20,
        1082,
        1184,
        1700,
        25,
    ]
    assert spec.read.columns == ("id", "amount")
    assert list(spec.dates) == days("2024-01-03", "2024-01-02", "2024-01-01")
    assert (spec.read.date_column, spec.read.timezone) == ("at", "Europe/Helsinki")
    assert spec.destination_table == "twice"
    assert spec.max_rejects == 3
    assert spec.sink_type == "files"
    assert spec.sink_options["format"] == "parquet"


def test_it_goes_from_created_to_completed(stage: Stage, api: httpx.Client) -> None:
    transfer = stage.make_transfer()
    path = f"/backfills/{stage.make_backfill(transfer)['transfer_backfill_id']}"
    stage.plan()
    planned = answer(api.get(path))["data"]
    assert planned["status"] == "SCHEDULED"
    assert planned["transfer_runs_created"] == 5
    assert stage.run(rows=7) == days(*(f"2024-01-0{day}" for day in (5, 4, 3, 2, 1)))
    done = answer(api.get(path))["data"]
    assert done["status"] == "COMPLETED"
    assert done["transfer_runs_completed"] == 5
    assert done["rows_total"] == 35
    assert done["progress"] == 1.0
    assert STAMP.fullmatch(done["start_time"])
    assert STAMP.fullmatch(done["end_time"])


def test_oldest_first_when_asked_for(stage: Stage) -> None:
    stage.make_backfill(stage.make_transfer(), order="oldest_first")
    assert stage.plan_and_run() == days(*(f"2024-01-0{day}" for day in (1, 2, 3, 4, 5)))


def test_overlap_is_refused_and_named_until_it_has_ended(stage: Stage, api: httpx.Client) -> None:
    transfer = stage.make_transfer()
    first = stage.make_backfill(transfer, "2024-01-01", "2024-01-10")
    refused = answer(post(api, transfer, range_start="2024-01-10", range_end="2024-01-12"), 422)
    assert f"Backfill {first['transfer_backfill_id']} " in refused["error"]["description"]
    second = stage.make_backfill(transfer, "2024-01-11", "2024-01-12")  # beside it
    for made in (first, second):
        answer(
            api.patch(f"/backfills/{made['transfer_backfill_id']}", json={"status": "CANCELLED"})
        )
    again = stage.make_backfill(transfer, "2024-01-10", "2024-01-12")
    answer(api.patch(f"/backfills/{again['transfer_backfill_id']}", json={"status": "CANCELLED"}))


def test_an_excluded_date_blocks_nobody(stage: Stage, api: httpx.Client) -> None:
    transfer = stage.make_transfer()
    first = stage.make_backfill(
        transfer, "2024-01-01", "2024-01-05", exclude_dates=["2024-01-03", "2024-02-01"]
    )
    assert first["transfer_runs_total"] == 4
    stage.make_backfill(transfer, "2024-01-03", "2024-01-03")
    stage.plan_and_run()
    stage.plan_and_run()


def test_only_missing_and_only_failed(stage: Stage, api: httpx.Client) -> None:
    transfer = stage.make_transfer()
    stage.make_backfill(transfer, "2024-01-01", "2024-01-03")
    stage.plan_and_run(fail=days("2024-01-02"), rows=4)
    body = {"range_start": "2024-01-01", "range_end": "2024-01-04"}
    plan = answer(post(api, transfer, **body, only="missing", dry_run=True))["data"]
    assert plan["dry_run"] is True
    assert plan["transfer_runs_total"] == 2
    assert plan["blocked_by"] is None
    assert {item["date"]: (item["action"], item["replaces"]) for item in plan["dates"]} == {
        "2024-01-04": ("run", None),
        "2024-01-03": ("skip", None),
        "2024-01-02": ("run", None),
        "2024-01-01": ("skip", None),
    }
    everything = answer(post(api, transfer, **body, dry_run=True))["data"]
    assert [item["replaces"] for item in everything["dates"]] == [None, 4, None, 4]
    failed = stage.make_backfill(transfer, "2024-01-01", "2024-01-04", only="failed")
    assert failed["transfer_runs_total"] == 1
    blocked = answer(post(api, transfer, **body, dry_run=True))["data"]
    assert blocked["blocked_by"] == failed["transfer_backfill_id"]
    assert stage.plan_and_run() == days("2024-01-02")


def test_a_dry_run_creates_nothing(stage: Stage, api: httpx.Client) -> None:
    transfer = stage.make_transfer()
    answer(post(api, transfer, range_start="2024-01-01", range_end="2024-01-02", dry_run=True))
    answer(api.get(f"/transfers/{transfer}/backfills/latest"), 404)


def test_nothing_left_to_run_is_refused(stage: Stage, api: httpx.Client) -> None:
    body = {"range_start": "2024-01-01", "range_end": "2024-01-01"}
    refused = answer(post(api, stage.make_transfer(), **body, exclude_dates=["2024-01-01"]), 422)
    assert "none of the 1 dates" in refused["error"]["description"]


def test_reason_and_concurrency_are_kept(stage: Stage) -> None:
    made = stage.make_backfill(stage.make_transfer(), reason="late data", max_concurrent_runs=2)
    assert made["reason"] == "late data"
    assert stage.store.get_backfill(1, made["transfer_backfill_id"]).max_concurrent == 2
    stage.plan_and_run()


def test_latest_is_the_newest_in_whatever_status(stage: Stage, api: httpx.Client) -> None:
    transfer = stage.make_transfer()
    path = f"/transfers/{transfer}/backfills/latest"
    answer(api.get(path), 404)
    stage.make_backfill(transfer, "2024-01-01", "2024-01-01")
    second = stage.make_backfill(transfer, "2024-02-01", "2024-02-01")
    answer(api.patch(f"/backfills/{second['transfer_backfill_id']}", json={"status": "CANCELLED"}))
    latest = answer(api.get(path))["data"]
    assert latest["transfer_backfill_id"] == second["transfer_backfill_id"]
    assert latest["status"] == "CANCELLED"
    stage.plan_and_run()


def test_the_list_has_incomplete_ones_newest_first(stage: Stage, api: httpx.Client) -> None:
    transfer = stage.make_transfer()
    ids = [
        stage.make_backfill(transfer, f"2024-01-0{day}", f"2024-01-0{day}")["transfer_backfill_id"]
        for day in (1, 2, 3, 4)
    ]
    stage.plan_and_run()  # completes the first
    stage.plan_and_run(fail=days("2024-01-02"))
    answer(api.patch(f"/backfills/{ids[2]}", json={"status": "CANCELLED"}))
    listed = [
        (item["transfer_backfill_id"], item["status"])
        for item in answer(api.get("/backfills"))["data"]
        if item["transfer_id"] == transfer
    ]
    assert listed == [(ids[3], "CREATED"), (ids[1], "FAILED")]
    stage.plan_and_run()


def test_the_same_idempotency_key_gives_the_same_backfill(stage: Stage, api: httpx.Client) -> None:
    transfer = stage.make_transfer()
    headers = {"Idempotency-Key": f"key-{transfer}"}
    path = f"/transfers/{transfer}/backfills"
    body = {"range_start": "2024-01-01", "range_end": "2024-01-02"}
    first = answer(api.post(path, json=body, headers=headers))
    assert answer(api.post(path, json=body, headers=headers)) == first
    other = {**body, "range_end": "2024-01-03"}
    refused = answer(api.post(path, json=other, headers=headers), 422)
    assert refused["error"]["code"] == "UNPROCESSABLE_ENTITY"
    stage.plan_and_run()


def test_a_repeated_request_finds_what_it_made_before_a_crash(
    stage: Stage, api: httpx.Client
) -> None:
    from refill.planning.dates import DateRange
    from refill.service.identity import repeatable_uid
    from refill.service.transfer_backfills import BackfillRequest

    transfer = stage.make_transfer()
    path = f"/v1/teams/1/transfers/{transfer}/backfills"
    day = date(2024, 1, 1)
    made = stage.service.transfer_backfills.submit(
        1,
        transfer,
        BackfillRequest(range=DateRange(start=day, end=day)),
        uid=repeatable_uid(1, f"POST {path}", "crashed"),
        user_id=1,
    )
    stage.plan_and_run()
    again = api.post(
        f"/transfers/{transfer}/backfills",
        json={"range_start": "2024-01-01", "range_end": "2024-01-01"},
        headers={"Idempotency-Key": "crashed"},
    )
    assert answer(again)["data"]["transfer_backfill_id"] == made.id


def test_edits_do_not_reach_into_a_backfill(stage: Stage, api: httpx.Client) -> None:
    body = stage.transfer_body()
    transfer = answer(api.post("/transfers", json=body), 201)["data"]["transfer_id"]
    made = stage.make_backfill(transfer)
    changed = {
        **body,
        "data_source_settings": [
            {"field_id": "table", "value": "orders"},
            {"field_id": "date_column", "value": "at"},
        ],
    }
    answer(api.put(f"/transfers/{transfer}", json=changed))
    spec = stage.store.get_backfill(1, made["transfer_backfill_id"]).spec
    assert spec.read.date_column == "day"
    stage.plan_and_run()


def test_the_runs_of_a_backfill_are_listed(stage: Stage, api: httpx.Client) -> None:
    transfer = stage.make_transfer()
    stage.make_backfill(transfer, "2024-01-01", "2024-01-03")
    stage.plan_and_run(fail=days("2024-01-02"), rows=9, error="The disk is full.")
    span = {"start_date": LONG_AGO.isoformat(), "end_date": FAR_AHEAD.isoformat()}
    path = f"/transfers/{transfer}/runs"
    found = answer(
        api.get(path, params={**span, "sort_field": "data_date", "sort_direction": "ASC"})
    )["data"]
    assert [(run["data_date"], run["status"], run["total_rows"]) for run in found] == [
        ("2024-01-01", "COMPLETED", 9),
        ("2024-01-02", "FAILED", None),
        ("2024-01-03", "COMPLETED", 9),
    ]
    assert {run["type"] for run in found} == {"Backfill"}
    assert found[1]["message"] == "The disk is full."
    assert found[0]["message"] == ""
    assert STAMP.fullmatch(found[0]["created_time"])
    assert STAMP.fullmatch(found[0]["ended_time"])
    issues = answer(api.get(path, params={**span, "filter_issues_only": "true"}))["data"]
    assert [run["data_date"] for run in issues] == ["2024-01-02"]
    page = answer(api.get(path, params={**span, "limit": 1, "offset": 1}))["data"]
    assert len(page) == 1
    none = answer(api.get(path, params={**span, "end_date": "2000-01-02"}))["data"]
    assert none == []

    detail = answer(api.get(f"/transfer_runs/{found[0]['id']}"))["data"]
    assert detail["query_amount"] == 1
    assert detail["failed_query_amount"] == 0
    assert detail["query_details"] == [
        {"status": "COMPLETED", "duration": 0.5, "rows": 9, "error_description": None}
    ]
    assert STAMP.fullmatch(detail["started_time"])
    assert STAMP.fullmatch(detail["queued_time"])
    assert detail["external_id"]
    failed = answer(api.get(f"/transfer_runs/{found[1]['id']}"))["data"]
    assert failed["failed_query_amount"] == 1
    assert failed["query_details"][0]["error_description"] == "The disk is full."


def test_rows_that_could_not_be_delivered_are_listed(stage: Stage, api: httpx.Client) -> None:
    transfer = stage.make_transfer(
        settings={"table": "orders", "date_column": "day", "max_rejects": 5}
    )
    made = stage.make_backfill(transfer, "2024-01-01", "2024-01-02", order="oldest_first")
    rejected = (Reject(key=("7", None), reason="too_large", detail="5 MB"),)
    stage.plan_and_run(rejects=rejected)
    path = f"/backfills/{made['transfer_backfill_id']}"
    data = answer(api.get(path))["data"]
    assert (data["status"], data["rows_total"], data["rows_rejected"]) == ("COMPLETED", 18, 2)
    page = answer(api.get(f"{path}/rejects", params={"limit": 1}))["data"]
    (first,) = page["rejects"]
    assert first.pop("transfer_run_id") > 0
    assert first == {
        "transfer_run_date": "2024-01-01",
        "key": ["7", None],
        "reason": "too_large",
        "detail": "5 MB",
    }
    rest = {"limit": 1, "cursor": page["next_cursor"]}
    page = answer(api.get(f"{path}/rejects", params=rest))["data"]
    assert [each["transfer_run_date"] for each in page["rejects"]] == ["2024-01-02"]
    assert page["next_cursor"] is None
    answer(api.get(f"{path}/rejects", params={"cursor": "?"}), 422)
    answer(api.get("/backfills/999999999/rejects"), 404)


def test_the_backfills_of_a_deleted_transfer_are_cancelled_and_stay_on_record(
    stage: Stage, api: httpx.Client
) -> None:
    transfer = stage.make_transfer()
    done = stage.make_backfill(transfer, "2024-01-01", "2024-01-01")["transfer_backfill_id"]
    stage.plan_and_run()
    active = stage.make_backfill(transfer, "2024-01-02", "2024-01-02")["transfer_backfill_id"]
    api.delete(f"/transfers/{transfer}")
    assert answer(api.get(f"/backfills/{active}"))["data"]["status"] == "CANCELLED"
    assert answer(api.get(f"/backfills/{done}"))["data"]["status"] == "COMPLETED"
    answer(api.get(f"/transfers/{transfer}/backfills/latest"), 404)
