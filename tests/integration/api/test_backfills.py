"""Backfills of the sink dialect, row by row of its tables."""

import re
import threading

import httpx
import pytest

from refill.domain.slice import Fault, KeyRange, Reject
from refill.store.records import PlannedSlice
from tests.integration.api.running import Running, answer

FAULT = Fault(code="sink_refused", message="The folder cannot be written.", transient=False)
SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
MICROSECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def test_a_post_without_body_or_content_type_creates_one(
    server: Running, api: httpx.Client
) -> None:
    sink = server.make_sink(api)
    request = api.build_request("POST", f"/api/sinks/{sink['name']}/backfills")
    assert "Content-Type" not in request.headers
    backfill = answer(api.send(request), 200)
    assert SECONDS.fullmatch(backfill.pop("inserted_at"))
    assert SECONDS.fullmatch(backfill.pop("updated_at"))
    assert re.fullmatch(r"[0-9a-f-]{36}", backfill.pop("id"))
    assert backfill == {
        "state": "active",
        "table": "public.orders",
        "sink_consumer": sink["name"],
        "sort_column": None,
        "rows_initial_count": 0,
        "rows_processed_count": 0,
        "rows_ingested_count": 0,
        "canceled_at": None,
        "completed_at": None,
        "paused_at": None,
        "failed_at": None,
        "error": None,
        "error_code": None,
        "reason": None,
        "progress": 0.0,
        "rows_rejected_count": 0,
        "rows_per_second": None,
        "eta_seconds": None,
        "slices": {"total": 0, "completed": 0, "failed": 0, "running": 0},
    }


def test_a_sink_is_addressed_by_id_or_by_name(server: Running, api: httpx.Client) -> None:
    sink = server.make_sink(api)
    made = answer(api.post(f"/api/sinks/{sink['id']}/backfills"), 200)
    assert answer(api.get(f"/api/sinks/{sink['name']}/backfills/{made['id']}"), 200) == made


def test_the_teams_list_goes_by_the_new_name_of_a_sink(server: Running, api: httpx.Client) -> None:
    path, made = server.make_backfill(api)
    name = server.name("renamed")
    answer(api.patch(path.removesuffix("/backfills"), json={"name": name}), 200)
    (listed,) = (b for b in answer(api.get("/api/backfills"), 200)["data"] if b["id"] == made["id"])
    assert listed["sink_consumer"] == name
    answer(api.get(f"/api/sinks/{listed['sink_consumer']}/backfills/{made['id']}"), 200)


def test_a_list_has_the_newest_first_and_nothing_beside_the_data(
    server: Running, api: httpx.Client
) -> None:
    path, first = server.make_backfill(api)
    answer(api.patch(f"{path}/{first['id']}", json={"state": "cancelled"}), 200)
    second = answer(api.post(path), 200)
    listed = answer(api.get(path), 200)
    assert list(listed) == ["data"]
    assert [backfill["id"] for backfill in listed["data"]] == [second["id"], first["id"]]


def test_counters_are_what_was_read_delivered_and_rejected(
    server: Running, api: httpx.Client
) -> None:
    path, made = server.make_backfill(api)
    slices = [PlannedSlice(extent=KeyRange(upper=("9",)), target="t", rows_estimated=5)] * 2
    server.plan(*slices, rows_estimated=11)
    planned = answer(api.get(f"{path}/{made['id']}"), 200)
    assert planned["rows_initial_count"] == 11
    assert planned["slices"]["total"] == 2
    server.run(rows=4, rejects=(Reject(key=("1",), reason="too_large", detail="2 MB"),))
    done = answer(api.get(f"{path}/{made['id']}"), 200)
    assert done["state"] == "completed"
    assert done["progress"] == 1.0
    assert done["rows_initial_count"] == done["rows_processed_count"] == 8
    assert done["rows_ingested_count"] == 6
    assert done["rows_rejected_count"] == 2
    assert MICROSECONDS.fullmatch(done["completed_at"])
    assert done["slices"] == {"total": 2, "completed": 2, "failed": 0, "running": 0}
    slices_shown = answer(api.get(f"{path}/{made['id']}/slices"), 200)
    assert [part["index"] for part in slices_shown["data"]] == [0, 1]
    assert slices_shown["data"][0]["rows_read"] == 4
    assert slices_shown["next_cursor"] is None
    rejects = answer(api.get(f"{path}/{made['id']}/rejects?limit=1"), 200)
    assert rejects["data"] == [{"slice": 0, "key": ["1"], "reason": "too_large", "detail": "2 MB"}]
    after = f"{path}/{made['id']}/rejects?limit=5&cursor={rejects['next_cursor']}"
    assert [reject["slice"] for reject in answer(api.get(after), 200)["data"]] == [1]


def test_pause_resume_cancel(server: Running, api: httpx.Client) -> None:
    path, made = server.make_backfill(api)
    one = f"{path}/{made['id']}"
    paused = answer(api.patch(one, json={"state": "paused"}), 200)
    assert paused["state"] == "paused"
    assert MICROSECONDS.fullmatch(paused["paused_at"])
    assert answer(api.put(one, json={"state": "active"}), 200)["state"] == "active"
    cancelled = answer(api.patch(one, json={"state": "cancelled"}), 200)
    assert cancelled["state"] == "cancelled"
    assert MICROSECONDS.fullmatch(cancelled["canceled_at"])


def test_backfills_wait_while_their_sink_is_paused(server: Running, api: httpx.Client) -> None:
    path, made = server.make_backfill(api)
    sink = path.removesuffix("/backfills")
    server.plan()
    answer(api.patch(sink, json={"status": "paused"}), 200)
    server.run(rows=1)
    assert answer(api.get(f"{path}/{made['id']}"), 200)["rows_processed_count"] == 0
    health = answer(api.get(sink), 200)["health"]
    assert health["status"] == "warning"
    assert health["checks"][-1]["error"] == "the sink is paused: its backfills wait"
    assert answer(api.patch(sink, json={"status": "active"}), 200)["health"]["status"] == "healthy"
    server.run(rows=1)
    assert answer(api.get(f"{path}/{made['id']}"), 200)["state"] == "completed"


def test_a_disabled_sink_takes_no_new_backfill(server: Running, api: httpx.Client) -> None:
    sink = server.make_sink(api, status="disabled")
    refusal = answer(api.post(f"/api/sinks/{sink['name']}/backfills"), 422)
    said = f"{sink['name']} is disabled; set its status to active first"
    assert refusal["validation_errors"] == {"sink": [said]}


def test_a_failed_one_says_why_and_is_retried_by_active(server: Running, api: httpx.Client) -> None:
    path, made = server.make_backfill(api)
    one = f"{path}/{made['id']}"
    server.plan()
    server.run(fault=FAULT)
    failed = answer(api.get(one), 200)
    assert failed["state"] == "failed"
    assert MICROSECONDS.fullmatch(failed["failed_at"])
    assert "cannot be written" in failed["error"]
    sink = answer(api.get(path.removesuffix("/backfills")), 200)
    assert sink["health"]["status"] == "error"
    assert "cannot be written" in sink["health"]["checks"][1]["error"]
    assert answer(api.patch(one, json={"state": "active"}), 200)["state"] == "active"
    server.run(rows=1)
    assert answer(api.get(one), 200)["state"] == "completed"
    sink = answer(api.get(path.removesuffix("/backfills")), 200)
    assert sink["health"]["status"] == "healthy"


def test_a_retry_is_refused_while_another_is_under_way(server: Running, api: httpx.Client) -> None:
    path, failed = server.make_backfill(api)
    server.plan()
    server.run(fault=FAULT)
    other = answer(api.post(path), 200)
    refusal = answer(api.patch(f"{path}/{failed['id']}", json={"state": "active"}), 422)
    assert other["id"] in refusal["summary"]


@pytest.mark.parametrize("final", ["completed", "cancelled"])
@pytest.mark.parametrize("asked", ["active", "paused", "cancelled"])
def test_final_states_are_final(server: Running, api: httpx.Client, final: str, asked: str) -> None:
    path, made = server.make_backfill(api)
    one = f"{path}/{made['id']}"
    if final == "cancelled":
        answer(api.patch(one, json={"state": "cancelled"}), 200)
    else:
        server.plan()
        server.run()
    if final == asked:
        assert answer(api.patch(one, json={"state": asked}), 200)["state"] == final
        return
    refusal = answer(api.patch(one, json={"state": asked}), 422)
    problem = refusal["validation_errors"]["state"][0]
    assert final in problem
    assert asked in problem
    assert "final" in problem
    assert refusal["code"] == "invalid_transition"


@pytest.mark.parametrize("asked", ["completed", "failed"])
def test_a_state_that_clients_may_not_set_is_named_with_those_they_may(
    server: Running, api: httpx.Client, asked: str
) -> None:
    path, made = server.make_backfill(api)
    refusal = answer(api.patch(f"{path}/{made['id']}", json={"state": asked}), 422)
    problem = refusal["validation_errors"]["state"][0]
    assert asked in problem
    assert "cancelled, paused" in problem


def test_a_misspelt_state_is_named_with_those_that_can_be_set(
    server: Running, api: httpx.Client
) -> None:
    path, made = server.make_backfill(api)
    refusal = answer(api.patch(f"{path}/{made['id']}", json={"state": "canceled"}), 422)
    said = "'canceled' cannot be set; set active, paused or cancelled"
    assert refusal["validation_errors"] == {"state": [said]}


def test_the_same_state_and_an_empty_body_change_nothing(
    server: Running, api: httpx.Client
) -> None:
    path, made = server.make_backfill(api)
    one = f"{path}/{made['id']}"
    assert answer(api.patch(one, json={"state": "active"}), 200) == made
    assert answer(api.patch(one, json={}), 200) == made
    assert answer(api.put(one), 200) == made
    paused = answer(api.patch(one, json={"state": "paused"}), 200)
    assert answer(api.patch(one, json={"state": "paused"}), 200) == paused


@pytest.mark.parametrize("identity", ["00000000-0000-4000-8000-000000000000", "17", "x", "é"])
def test_an_unknown_backfill_and_an_id_that_is_no_uuid_are_404(
    server: Running, api: httpx.Client, identity: str
) -> None:
    path, _ = server.make_backfill(api)
    for response in (api.get(f"{path}/{identity}"), api.patch(f"{path}/{identity}", json={})):
        expected = "Not found: No `backfill` found matching the provided ID or name"
        assert answer(response, 404) == {"summary": expected}


def test_another_sinks_backfill_is_404(server: Running, api: httpx.Client) -> None:
    path, _ = server.make_backfill(api)
    _, other = server.make_backfill(api)
    answer(api.get(f"{path}/{other['id']}"), 404)
    answer(api.patch(f"{path}/{other['id']}", json={"state": "cancelled"}), 404)
    answer(api.get(f"{path}/{other['id']}/slices"), 404)


def test_an_unknown_key_is_422(server: Running, api: httpx.Client) -> None:
    path, made = server.make_backfill(api)
    refusal = answer(api.post(path, json={"tabel": "orders"}), 422)
    assert refusal["validation_errors"] == {"tabel": ["is not a known key"]}
    refusal = answer(api.patch(f"{path}/{made['id']}", json={"status": "active"}), 422)
    assert refusal["validation_errors"] == {"status": ["is not a known key"]}


def test_a_second_one_for_the_same_table_is_422_and_names_the_first(
    server: Running, api: httpx.Client
) -> None:
    path, first = server.make_backfill(api)
    refusal = answer(api.post(path), 422)
    assert first["id"] in refusal["validation_errors"]["table"][0]
    answer(api.patch(f"{path}/{first['id']}", json={"state": "paused"}), 200)
    refusal = answer(api.post(path), 422)
    assert "paused" in refusal["summary"]


def test_other_tables_of_the_sink_may_run_at_the_same_time(
    server: Running, api: httpx.Client
) -> None:
    sink = server.make_sink(api, source={"include_tables": ["orders", "customers"]})
    path = f"/api/sinks/{sink['name']}/backfills"
    orders = answer(api.post(path, json={"table": "orders"}), 200)
    customers = answer(api.post(path, json={"table": "public.customers"}), 200)
    shown = answer(api.get(f"/api/sinks/{sink['id']}"), 200)
    active = {one["id"] for one in shown["active_backfills"]}
    assert active == {orders["id"], customers["id"]}


def test_fifty_identical_creates_at_once_make_one(server: Running, api: httpx.Client) -> None:
    sink = server.make_sink(api)
    statuses: list[int] = []

    def create() -> None:
        response = api.post(f"/api/sinks/{sink['name']}/backfills")
        statuses.append(response.status_code)

    threads = [threading.Thread(target=create) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] + [422] * 49
    assert len(answer(api.get(f"/api/sinks/{sink['name']}/backfills"), 200)["data"]) == 1


def test_the_teams_list_filters_by_state_and_goes_on_by_cursor(
    server: Running,
) -> None:
    team = server.make_team()
    with server.client(server.make_token(team_id=team)) as api:
        made = [server.make_backfill(api) for _ in range(5)]
        path, last = made[-1]
        answer(api.patch(f"{path}/{last['id']}", json={"state": "cancelled"}), 200)
        everything = answer(api.get("/api/backfills"), 200)
        assert [one["id"] for one in everything["data"]] == [one["id"] for _, one in made[::-1]]
        assert everything["next_cursor"] is None
        active = answer(api.get("/api/backfills?state=active"), 200)
        assert len(active["data"]) == 4
        both = answer(api.get("/api/backfills?state=active&state=cancelled"), 200)
        assert len(both["data"]) == 5
        answer(api.get("/api/backfills?state=asleep"), 422)
        seen, cursor = [], None
        while True:
            query = {"limit": 2, **({"cursor": cursor} if cursor else {})}
            page = answer(api.get("/api/backfills", params=query), 200)
            seen += [one["id"] for one in page["data"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert seen == [one["id"] for one in everything["data"]]


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "cursor=nonsense"])
def test_a_limit_or_cursor_that_makes_no_sense_is_422(
    server: Running, api: httpx.Client, query: str
) -> None:
    path, made = server.make_backfill(api)
    paths = [path, "/api/backfills", "/api/sinks", f"{path}/{made['id']}/slices"]
    paths += [f"{path}/{made['id']}/rejects", "/api/postgres_databases"]
    for one in paths:
        refusal = answer(api.get(f"{one}?{query}"), 422)
        assert list(refusal["validation_errors"]) == [query.partition("=")[0]], one


def test_the_same_idempotency_key_gives_the_same_answer(server: Running, api: httpx.Client) -> None:
    sink = server.make_sink(api)
    path = f"/api/sinks/{sink['name']}/backfills"
    headers = {"Idempotency-Key": "once"}
    first = api.post(path, headers=headers)
    again = api.post(path, headers=headers)
    assert answer(again, 200) == answer(first, 200)
    assert again.headers["Idempotent-Replayed"] == "true"
    refusal = answer(api.post(path, headers=headers, json={"reason": "other"}), 422)
    assert "another body" in refusal["summary"]
    assert len(answer(api.get(path), 200)["data"]) == 1


def test_a_crash_between_commit_and_answer_is_found_again_by_the_key(
    server: Running, api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a kill leaves: the backfill is there, its answer was never kept."""
    sink = server.make_sink(api)
    path = f"/api/sinks/{sink['name']}/backfills"
    headers = {"Idempotency-Key": "crash"}
    with monkeypatch.context() as patched:

        def die(*_: object) -> None:
            raise RuntimeError("killed")

        patched.setattr(server.store, "save_answer", die)
        answer(api.post(path, headers=headers), 500)
    made = answer(api.get(path), 200)["data"]
    assert [answer(api.post(path, headers=headers), 200)] == made


def test_a_refused_request_may_be_made_again_under_the_same_key(
    server: Running, api: httpx.Client
) -> None:
    path, first = server.make_backfill(api)
    headers = {"Idempotency-Key": "later"}
    answer(api.post(path, headers=headers), 422)
    answer(api.patch(f"{path}/{first['id']}", json={"state": "cancelled"}), 200)
    assert answer(api.post(path, headers=headers), 200)["id"] != first["id"]


def test_a_key_is_visible_ascii_of_at_most_255(server: Running, api: httpx.Client) -> None:
    path, _ = server.make_backfill(api)
    answer(api.post(path, headers={"Idempotency-Key": "x" * 256}), 422)
