"""Every row of the transfer dialect's case table: its status, its code, what it says."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from refill.domain.access import Role, Scope
from refill.domain.errors import StoreBusy
from tests.integration.transfers.stage import Stage, answer, running_stage

RANGE = {"range_start": "2024-01-01", "range_end": "2024-01-02"}
FAR = 9_000_000


@pytest.fixture(scope="module")
def transfer(shared_stage: Stage) -> int:
    return shared_stage.make_transfer()


def check_error(response: httpx.Response, status: int, code: str, words: str = "") -> str:
    """The envelope, its limits and its headers; returns the description."""
    body = answer(response, status)
    assert set(body) == {"meta", "error"}
    error = body["error"]
    assert error["code"] == code
    assert len(error["code"]) <= 100
    assert 0 < len(error["message"]) <= 255
    assert len(error["description"]) <= 255
    assert words in error["description"]
    assert 1 <= len(body["meta"]["request_id"]) <= 50
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert 1 <= int(response.headers["X-RateLimit-Limit"]) <= 10_000
    description: str = error["description"]
    return description


def test_no_token(shared_stage: Stage) -> None:
    response = httpx.get(f"{shared_stage.url}/teams/1/backfills")
    check_error(response, 401, "UNAUTHORIZED")


@pytest.mark.parametrize("kind", ["malformed", "unknown", "revoked", "expired"])
def test_a_token_that_is_not_valid(shared_stage: Stage, kind: str) -> None:
    token = "nonsense"
    if kind == "unknown":
        token = "rf_0123456789ab_" + "a" * 43
    if kind == "revoked":
        token = shared_stage.make_token()
        shared_stage.store.revoke_key(max(key.id for key in shared_stage.store.list_keys()))
    if kind == "expired":
        token = shared_stage.make_token(expires_at=datetime.now(UTC) - timedelta(hours=1))
    with shared_stage.client(token) as client:
        check_error(client.get("/backfills"), 401, "API_KEY_INVALID")


def test_a_token_without_the_scope(shared_stage: Stage, transfer: int) -> None:
    token = shared_stage.make_token(Scope.TRANSFERS_READ)
    with shared_stage.client(token) as client:
        answer(client.get("/backfills"))
        response = client.post(f"/transfers/{transfer}/backfills", json=RANGE)
        check_error(response, 403, "FORBIDDEN", "dwh_transfers_write")
        check_error(client.get("/destinations"), 403, "FORBIDDEN", "dwh_destinations_read")


def test_a_user_without_the_permission(shared_stage: Stage, transfer: int) -> None:
    token = shared_stage.make_token(Scope.ALL, role=Role.VIEWER)
    with shared_stage.client(token) as client:
        answer(client.get("/transfers"))
        response = client.post(f"/transfers/{transfer}/backfills", json=RANGE)
        check_error(response, 403, "FORBIDDEN", "viewer")


@pytest.fixture(scope="module")
def everything(shared_stage: Stage) -> dict[str, int]:
    """One of each noun, of the first team."""
    transfer = shared_stage.make_transfer()
    backfill = shared_stage.make_backfill(transfer)["transfer_backfill_id"]
    shared_stage.plan()
    runs = shared_stage.store.list_slices(backfill).items
    destination = shared_stage.store.get_transfer(1, transfer).destination_id
    return {
        "transfer": transfer,
        "backfill": backfill,
        "run": runs[0].id,
        "destination": destination,
    }


ADDRESSED = [
    ("POST", "/transfers/{transfer}/backfills", RANGE),
    ("GET", "/transfers/{transfer}/backfills/latest", None),
    ("GET", "/backfills/{backfill}", None),
    ("PATCH", "/backfills/{backfill}", {"status": "CANCELLED"}),
    ("PATCH", "/backfills/{backfill}", {"status": "COMPLETED"}),
    ("POST", "/backfills/{backfill}/retries", {}),
    ("GET", "/transfers/{transfer}", None),
    ("DELETE", "/transfers/{transfer}", None),
    ("PUT", "/transfers/{transfer}/state", {"transfer_state": "pause"}),
    ("GET", "/transfers/{transfer}/runs?start_date=2024-01-01&end_date=2024-01-02", None),
    ("GET", "/transfer_runs/{run}", None),
    ("GET", "/destinations/{destination}", None),
    ("GET", "/destinations/{destination}/usage", None),
    ("DELETE", "/destinations/{destination}", None),
]


@pytest.mark.parametrize(("method", "path", "body"), ADDRESSED)
def test_not_there_and_not_yours_look_the_same(
    shared_stage: Stage, everything: dict[str, int], method: str, path: str, body: Any
) -> None:
    other = shared_stage.store.create_team("others").id
    token = shared_stage.make_token(team_id=other)
    absent = {name: identity + FAR for name, identity in everything.items()}
    headers = {"Authorization": f"Bearer {token}"}
    seen = []
    with httpx.Client(base_url=shared_stage.url, headers=headers) as client:
        for team, ids in ((other, everything), (other, absent), (1, everything), (FAR, absent)):
            place = f"/teams/{team}{path.format(**ids)}"
            response = client.request(method, place, json=body)
            check_error(response, 404, "NOT_FOUND")
            seen.append(response.json()["error"])
    assert all(error == seen[0] for error in seen)


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "/transfers/{transfer}"), ("POST", "/transfers/{transfer}/validations")],
)
def test_another_teams_transfer_cannot_be_changed(
    shared_stage: Stage, everything: dict[str, int], method: str, path: str
) -> None:
    body = shared_stage.transfer_body()
    token = shared_stage.make_token(team_id=shared_stage.store.create_team("others").id)
    team = shared_stage.store.list_teams()[-1].id
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=f"{shared_stage.url}/teams/{team}", headers=headers) as client:
        check_error(client.request(method, path.format(**everything), json=body), 404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("{", "not JSON"),
        ("[]", ""),
        ("{}", "range_start"),
        ('{"range_start": "2024-01-01"}', "range_end"),
        ('{"range_start": 20240101, "range_end": "2024-01-02"}', "range_start"),
        ('{"range_start": "2024-02-30", "range_end": "2024-03-01"}', "there is no date 2024-02-30"),
        ('{"range_start": "0000-01-01", "range_end": "2024-03-01"}', "range_start"),
        ('{"range_start": "2024-1-1", "range_end": "2024-03-01"}', "YYYY-MM-DD"),
        ('{"range_start": "2024-01-01T00:00:00Z", "range_end": "2024-03-01"}', "range_start"),
        (json.dumps({**RANGE, "order": "sideways"}), "order"),
        (json.dumps({**RANGE, "max_concurrent_runs": 0}), "max_concurrent_runs"),
        (json.dumps({**RANGE, "max_concurrent_runs": "2"}), "max_concurrent_runs"),
        (json.dumps({**RANGE, "exclude_dates": ["yesterday"]}), "exclude_dates.0"),
        (json.dumps({**RANGE, "only": "some"}), "only"),
        (json.dumps({**RANGE, "dry_run": "yes"}), "dry_run"),
        (json.dumps({**RANGE, "reason": "x" * 1001}), "reason"),
    ],
)
def test_a_body_that_cannot_be_read(
    shared_api: httpx.Client, transfer: int, body: str, field: str
) -> None:
    response = shared_api.post(f"/transfers/{transfer}/backfills", content=body)
    check_error(response, 400, "BAD_REQUEST", field)


@pytest.mark.parametrize("identity", ["0", "-1", "x", "9223372036854775808", "1.5", "+1"])
@pytest.mark.parametrize("path", ["/backfills/{}", "/transfers/{}", "/transfer_runs/{}"])
def test_an_id_that_is_none(shared_api: httpx.Client, path: str, identity: str) -> None:
    check_error(shared_api.get(path.format(identity)), 400, "BAD_REQUEST", "_id")


@pytest.mark.parametrize("team", ["x", "-1", "9223372036854775808", "+1"])
def test_a_team_id_that_is_none(shared_stage: Stage, team: str) -> None:
    headers = {"Authorization": f"Bearer {shared_stage.token}"}
    response = httpx.get(f"{shared_stage.url}/teams/{team}/backfills", headers=headers)
    assert response.status_code == 400


@pytest.mark.parametrize("body", [{}, {"status": "GONE"}, {"status": 1}])
def test_a_status_that_is_none(shared_api: httpx.Client, body: Any, transfer: int) -> None:
    check_error(shared_api.patch("/backfills/1", json=body), 400, "BAD_REQUEST", "status")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"range_start": "2024-01-02", "range_end": "2024-01-01"}, "swap them"),
        ({"range_start": "2001-01-01", "range_end": "2024-01-01"}, "at most 3660"),
        ({"range_start": "2024-01-01", "range_end": "9999-12-31"}, ""),
        ({**RANGE, "rang": 1}, "rang"),
    ],
)
def test_a_range_that_makes_no_sense(
    shared_api: httpx.Client, transfer: int, body: Any, words: str
) -> None:
    response = shared_api.post(f"/transfers/{transfer}/backfills", json=body)
    check_error(response, 422, "UNPROCESSABLE_ENTITY", words)


@pytest.fixture(scope="module")
def late_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """It is half past eleven in the evening of 15 June 2024, UTC."""
    now = datetime(2024, 6, 15, 23, 30, tzinfo=UTC)
    with running_stage(tmp_path_factory.mktemp("late"), clock=lambda: now) as running:
        yield running


@pytest.mark.parametrize(
    ("timezone", "today"),
    [("UTC", "2024-06-15"), ("Asia/Tokyo", "2024-06-16"), ("America/Chicago", "2024-06-15")],
)
def test_no_date_after_today_in_the_zone_of_the_transfer(
    late_stage: Stage, timezone: str, today: str
) -> None:
    transfer = late_stage.make_transfer(
        settings={"table": "orders", "date_column": "at", "timezone": timezone}
    )
    late_stage.make_backfill(transfer, "2024-06-01", today)
    tomorrow = f"2024-06-{int(today[-2:]) + 1}"
    with late_stage.client() as client:
        body = {"range_start": tomorrow, "range_end": tomorrow}
        response = client.post(f"/transfers/{transfer}/backfills", json=body)
        check_error(response, 422, "UNPROCESSABLE_ENTITY", f"after today, {today}")


def test_deleting_a_destination_in_use(
    shared_api: httpx.Client, everything: dict[str, int]
) -> None:
    response = shared_api.delete(f"/destinations/{everything['destination']}")
    check_error(response, 409, "CONFLICT_ERROR")


def test_a_method_that_is_not_there(shared_api: httpx.Client, transfer: int) -> None:
    check_error(shared_api.patch(f"/transfers/{transfer}"), 405, "METHOD_NOT_ALLOWED")
    check_error(shared_api.delete("/backfills"), 405, "METHOD_NOT_ALLOWED")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/transfers/available-sources"),
        ("DELETE", "/transfers/available-options"),
        ("GET", "/transfers/validations"),
        ("PUT", "/destinations/test-connection"),
    ],
)
def test_a_word_in_the_path_is_not_taken_for_an_id(
    shared_api: httpx.Client, method: str, path: str
) -> None:
    check_error(shared_api.request(method, path), 405, "METHOD_NOT_ALLOWED")


def test_a_path_that_is_not_there(shared_api: httpx.Client) -> None:
    check_error(shared_api.get("/nothing"), 404, "NOT_FOUND")


def test_a_body_that_is_too_large(shared_api: httpx.Client, transfer: int) -> None:
    body = json.dumps({**RANGE, "reason": "x" * 2_000_000})
    response = shared_api.post(f"/transfers/{transfer}/backfills", content=body)
    check_error(response, 413, "PAYLOAD_TOO_LARGE")


def test_a_store_that_is_busy(
    shared_stage: Stage, shared_api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*args: object, **options: object) -> None:
        raise StoreBusy("The store is locked; try again.", retry_after_seconds=2)

    monkeypatch.setattr(shared_stage.store, "list_backfills", busy)
    response = shared_api.get("/backfills")
    check_error(response, 503, "SERVICE_UNAVAILABLE")
    assert response.headers["Retry-After"] == "2"


def test_anything_unforeseen_shows_nothing_of_the_inside(
    shared_stage: Stage, shared_api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **options: object) -> None:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr(shared_stage.store, "list_backfills", broken)
    response = shared_api.get("/backfills")
    check_error(response, 500, "INTERNAL_SERVER_ERROR")
    assert "hunter2" not in response.text


def test_the_rate(tmp_path: Path) -> None:
    with running_stage(tmp_path, rate_limit_per_hour=2) as stage, stage.client() as client:
        first = client.get("/backfills")
        assert first.headers["X-RateLimit-Limit"] == "2"
        assert first.headers["X-RateLimit-Remaining"] == "1"
        client.get("/backfills")
        refused = client.get("/backfills")
        check_error(refused, 429, "TOO_MANY_REQUESTS")
        assert 1 <= int(refused.headers["Retry-After"]) <= 3600


def test_preflight(shared_stage: Stage) -> None:
    response = httpx.options(f"{shared_stage.url}/teams/1/backfills")
    assert response.status_code in (200, 204)
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert "PATCH" in response.headers["Access-Control-Allow-Methods"]
    assert "Authorization" in response.headers["Access-Control-Allow-Headers"]


@pytest.mark.parametrize(
    ("params", "status"),
    [
        ({}, 400),
        ({"start_date": "2024-01-01T00:00:00Z"}, 400),
        ({"start_date": "soon", "end_date": "2024-01-02"}, 400),
        ({"start_date": "2024-01-01", "end_date": "2024-01-02", "limit": 10_001}, 400),
        ({"start_date": "2024-01-01", "end_date": "2024-01-02", "offset": -1}, 400),
        ({"start_date": "2024-01-01", "end_date": "2024-01-02", "sort_field": "id"}, 400),
        ({"start_date": "2024-01-03", "end_date": "2024-01-02"}, 422),
    ],
)
def test_asking_for_runs_wrongly(
    shared_api: httpx.Client, transfer: int, params: dict[str, Any], status: int
) -> None:
    code = {400: "BAD_REQUEST", 422: "UNPROCESSABLE_ENTITY"}[status]
    check_error(shared_api.get(f"/transfers/{transfer}/runs", params=params), status, code)
