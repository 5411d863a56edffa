"""What holds for every request: ids, limits, methods, forms of errors."""

import json
import logging
import re
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import httpx
import pytest

from refill.domain.errors import StoreBusy
from refill.logs import JsonFormatter
from tests.integration.api.running import Running, answer, running_server

UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def test_every_answer_has_a_request_id_of_its_own(api: httpx.Client) -> None:
    ids = {api.get("/api/sinks").headers["X-Request-Id"] for _ in range(3)}
    assert len(ids) == 3
    assert all(UUID7.fullmatch(found) for found in ids)


class Lines(logging.Handler):
    """What is logged, line by line; it may come a moment after the answer."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self._lines: SimpleQueue[str] = SimpleQueue()

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.put(self.format(record))

    def of(self, request_id: str) -> dict[str, Any]:
        while True:
            line: dict[str, Any] = json.loads(self._lines.get(timeout=10))
            if line["request_id"] == request_id:
                return line


def test_the_request_id_is_in_the_envelope_and_in_the_log(api: httpx.Client) -> None:
    lines = Lines()
    logger = logging.getLogger("refill.api")
    logger.addHandler(lines)
    logger.setLevel(logging.INFO)
    try:
        response = api.get("/v1/teams/1/transfers/999999")
        request_id = response.json()["meta"]["request_id"]
        assert response.headers["X-Request-Id"] == request_id
        assert lines.of(request_id)["status"] == 404
    finally:
        logger.removeHandler(lines)
        logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/api/sinks", "GET, POST"),
        ("/api/sinks/x/backfills/y", "GET, PATCH, PUT"),
        ("/health", "GET"),
    ],
)
def test_a_method_that_is_not_there_is_405_and_names_those_that_are(
    api: httpx.Client, path: str, allowed: str
) -> None:
    response = api.request("DELETE", path)
    assert allowed in answer(response, 405)["summary"]
    assert response.headers["Allow"] == allowed


def test_the_transfer_dialect_says_405_in_its_own_form(api: httpx.Client) -> None:
    response = api.delete("/v1/teams/1/transfers")
    assert answer(response, 405)["error"]["code"] == "METHOD_NOT_ALLOWED"
    assert "GET" in response.headers["Allow"]


def test_no_fixed_path_is_taken_for_an_id(server: Running, api: httpx.Client) -> None:
    paths = server.app.openapi()["paths"]
    fixed = {
        path.replace("{team_id}", "1"): {*paths[other]} - {*paths[path]}
        for path in paths
        for other in paths
        if takes(other, path)
    }
    assert len(fixed) >= 4
    for path, methods in fixed.items():
        for method in methods:
            response = api.request(method, path)
            assert answer(response, 405)["error"]["code"] == "METHOD_NOT_ALLOWED"
            assert method.upper() not in response.headers["Allow"]


def takes(template: str, fixed: str) -> bool:
    """Whether the template has parameters where the other path has words, and is it otherwise."""
    pairs = [*zip(template.split("/"), fixed.split("/"), strict=False)]
    return (
        template.count("/") == fixed.count("/")
        and template != fixed
        and all(own == word or ("{" in own and "{" not in word) for own, word in pairs)
    )


def test_a_path_that_is_not_there_is_404_in_the_form_of_its_dialect(api: httpx.Client) -> None:
    assert answer(api.get("/api/nothing"), 404) == {"summary": "There is nothing at this path."}
    assert answer(api.get("/v1/nothing"), 404)["error"]["code"] == "NOT_FOUND"


def test_an_address_with_a_nul_is_400(api: httpx.Client) -> None:
    assert "NUL" in answer(api.get("/api/sinks/a%00b"), 400)["summary"]
    assert "NUL" in answer(api.get("/api/sinks?cursor=%00"), 400)["summary"]


def test_a_body_over_the_limit_is_413(server: Running, api: httpx.Client) -> None:
    large = b'{"reason": "' + b"x" * server.settings.body_limit_bytes + b'"}'
    response = api.post("/api/sinks/x/backfills", content=large)
    assert "larger than" in answer(response, 413)["summary"]
    refusal = answer(api.post("/v1/teams/1/transfers", content=large), 413)
    assert refusal["error"]["code"] == "PAYLOAD_TOO_LARGE"


def test_a_chunked_body_over_the_limit_is_413_too(server: Running, api: httpx.Client) -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(server.settings.body_limit_bytes // 1000 + 2):
            yield b"x" * 1000

    answer(api.post("/api/sinks/x/backfills", content=parts()), 413)


@pytest.mark.parametrize("body", [b"{", b"not json", b"\xff\xfe", b'{"a": NaN}', b"{'a': 1}"])
def test_a_body_that_is_not_json_is_400(api: httpx.Client, body: bytes) -> None:
    assert "not JSON" in answer(api.post("/api/sinks", content=body), 400)["summary"]


def test_a_text_with_a_nul_is_422(api: httpx.Client) -> None:
    assert "NUL" in answer(api.post("/api/sinks", content=b'{"name": "a\\u0000"}'), 422)["summary"]


@pytest.mark.parametrize("body", [b"[]", b"5", b'"text"', b"null"])
def test_json_that_is_no_object_is_422(api: httpx.Client, body: bytes) -> None:
    assert answer(api.post("/api/sinks", content=body), 422)["validation_errors"]


def test_an_unknown_key_is_422_and_named(api: httpx.Client) -> None:
    body = {"name": "a", "database": "b", "destination": {"type": "files"}, "colour": "red"}
    refusal = answer(api.post("/api/sinks", json=body), 422)
    assert refusal["validation_errors"] == {"colour": ["is not a known key"]}
    assert refusal["code"] is None
    assert "colour" in refusal["summary"]


def test_missing_fields_are_422_and_named(api: httpx.Client) -> None:
    refusal = answer(api.post("/api/sinks"), 422)
    assert refusal["validation_errors"] == {
        "name": ["is required"],
        "database": ["is required"],
        "destination": ["is required"],
    }


def test_the_content_type_does_not_matter(server: Running, api: httpx.Client) -> None:
    name = server.name("plain")
    body = f'{{"name": "{name}", "url": "https://hooks.example/"}}'
    headers = {"Content-Type": "text/plain"}
    answer(api.post("/api/destinations/http_endpoints", content=body, headers=headers), 200)


def test_an_unforeseen_error_is_500_and_tells_nothing_of_the_inside(
    server: Running, api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the secret inside")

    monkeypatch.setattr(server.service.sinks, "list_views", fail)
    response = api.get("/api/sinks")
    assert "secret inside" not in response.text
    assert "went wrong" in answer(response, 500)["summary"]
    monkeypatch.setattr(server.service.transfer_views, "list_all", fail)
    refusal = answer(api.get("/v1/teams/1/transfers"), 500)
    assert refusal["error"]["code"] == "INTERNAL_SERVER_ERROR"
    assert "secret inside" not in str(refusal)


def test_a_busy_store_is_503_with_a_time_to_come_back(
    server: Running, api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object, **__: object) -> None:
        raise StoreBusy("The store is locked; try again.", retry_after_seconds=3)

    monkeypatch.setattr(server.service.sinks, "list_views", busy)
    response = api.get("/api/sinks")
    answer(response, 503)
    assert response.headers["Retry-After"] == "3"


def test_v1_answers_anybodys_browser(server: Running, api: httpx.Client) -> None:
    preflight = httpx.options(
        f"{server.url}/v1/teams/1/transfers",
        headers={"Origin": "https://app.example", "Access-Control-Request-Method": "POST"},
    )
    assert preflight.status_code == 204
    assert "POST" in preflight.headers["Access-Control-Allow-Methods"]
    assert "Authorization" in preflight.headers["Access-Control-Allow-Headers"]
    for response in (preflight, api.get("/v1/teams/1/transfers"), api.get("/v1/nothing")):
        assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Origin" not in api.get("/api/sinks").headers


class Hand:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, 12, 59, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def test_a_key_that_used_up_its_hour_waits_for_the_next(tmp_path: Path) -> None:
    hand = Hand()
    with (
        running_server(tmp_path, hand, rate_limit_per_hour=3) as server,
        server.client() as api,
        server.client() as other,
    ):
        left = [api.get("/api/sinks").headers["X-RateLimit-Remaining"] for _ in range(3)]
        assert left == ["2", "1", "0"]
        refused = api.get("/api/sinks")
        answer(refused, 429)
        assert refused.headers["Retry-After"] == "60"
        assert refused.headers["X-RateLimit-Limit"] == "3"
        assert refused.headers["X-RateLimit-Remaining"] == "0"
        elsewhere = api.get("/v1/teams/1/transfers")
        assert answer(elsewhere, 429)["error"]["code"] == "TOO_MANY_REQUESTS"
        answer(other.get("/api/sinks"), 200)
        hand.now = hand.now.replace(hour=13, minute=0)
        answer(api.get("/api/sinks"), 200)


def test_a_locked_sqlite_store_is_503_and_no_500(
    tmp_path: Path,
) -> None:
    with running_server(tmp_path) as server, server.client() as api:
        files = [path for path in tmp_path.rglob("*") if path.suffix in (".db", ".sqlite")]
        lock = sqlite3.connect(files[0], isolation_level=None)
        lock.execute("BEGIN EXCLUSIVE")
        try:
            body = {"name": "a", "url": "https://hooks.example/"}
            response = api.post("/api/destinations/http_endpoints", json=body, timeout=60)
        finally:
            lock.execute("ROLLBACK")
            lock.close()
        answer(response, 503)
        assert int(response.headers["Retry-After"]) >= 1
