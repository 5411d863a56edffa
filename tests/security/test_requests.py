"""Requests that are slow, or that end in two places, or that guess keys."""

import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from refill.api.rate import RateLimiter
from tests.contract.store.conftest import Opener, empty_opener
from tests.integration.api.running import Running, running_server

__all__ = ["empty_opener"]  # a fixture

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LIMIT = 7


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running_server(tmp_path, body_seconds=0.3, wrong_keys_per_hour=3) as running:
        yield running


def speak(server: Running, *parts: bytes) -> bytes:
    """What is answered until the server hangs up."""
    address = httpx.URL(server.url)
    with socket.create_connection((address.host, address.port or 80), 10) as wire:
        for part in parts:
            wire.sendall(part)
        answer = b""
        while part := wire.recv(65536):
            answer += part
        return answer


def head(token: str, *headers: str) -> bytes:
    lines = ["POST /api/sinks HTTP/1.1", "Host: x", f"Authorization: Bearer {token}", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


def test_a_body_that_does_not_arrive_is_answered_and_hung_up_on(server: Running) -> None:
    said = speak(server, head(server.make_token(), "Content-Length: 900"), b'{"na')
    assert said.startswith(b"HTTP/1.1 408")
    assert b"did not arrive in 0.3 s" in said


def test_nobody_waits_for_the_body_of_a_stranger(server: Running) -> None:
    said = speak(server, head("rf_" + "0" * 12 + "_" + "x" * 43, "Content-Length: 900"), b'{"na')
    assert said.startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize("path", [b"/api/sinks", b"/v1/teams/1/transfers", b"/health"])
def test_a_request_that_ends_in_two_places_is_refused_and_hung_up_on(
    server: Running, path: bytes
) -> None:
    token = server.make_token()
    smuggled = head(token, "Content-Length: 4", "Transfer-Encoding: chunked")
    smuggled = smuggled.replace(b"/api/sinks", path)
    hidden = b"0\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    said = speak(server, smuggled + hidden)
    assert said.startswith(b"HTTP/1.1 400")
    assert said.count(b"HTTP/1.1") == 1


def test_wrong_keys_are_counted_by_address_and_right_ones_still_come_in(server: Running) -> None:
    wrong = {"Authorization": "Bearer rf_" + "0" * 12 + "_" + "x" * 43}
    answers = [httpx.get(f"{server.url}/api/sinks", headers=wrong) for _ in range(5)]
    assert [each.status_code for each in answers] == [401] * 3 + [429] * 2
    assert int(answers[-1].headers["Retry-After"]) > 0
    with server.client() as api:
        assert api.get("/api/sinks").status_code == 200


@pytest.mark.parametrize("limit", [LIMIT, 250])
def test_the_limit_holds_over_all_processes_that_share_a_store(
    empty_opener: Opener, limit: int
) -> None:
    stores = [empty_opener() for _ in range(2)]
    stores[0].migrate()
    processes = [RateLimiter(limit, store.count_use) for store in stores]
    taken = [process.take("key 1", NOW) for _ in range(limit) for process in processes]
    admitted = [each for each in taken if each.retry_after_seconds is None]
    assert len(admitted) == limit
    assert processes[0].take("key 2", NOW).retry_after_seconds is None
    later = NOW.replace(hour=1)
    assert processes[1].take("key 1", later).retry_after_seconds is None


def test_a_limit_of_0_is_none() -> None:
    limiter = RateLimiter(0)
    assert all(limiter.take("key 1", NOW).retry_after_seconds is None for _ in range(20_000))
