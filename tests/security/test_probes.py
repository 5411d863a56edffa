"""A tenant's system that says nothing costs its own team a share, and nobody else."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from refill.domain.errors import RateLimited
from refill.service import probes as module
from refill.service.probes import NoAnswer, Probes
from tests.integration.api.running import Running, answer, running_server
from tests.servers.mute import Mute, mute_server
from tests.waiting import until

AT_ONCE = 4


@pytest.fixture
def mute() -> Iterator[Mute]:
    with mute_server() as server:
        yield server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running_server(tmp_path, probe_seconds=3.0, probes_per_team=AT_ONCE) as running:
        yield running


def test_45_tests_of_a_silent_database_stop_neither_health_nor_another_team(
    server: Running, mute: Mute
) -> None:
    """Each waits in a thread of the API's; those are 40, and every answer needs one."""
    with server.client() as attacker, ThreadPoolExecutor(45) as crowd:
        database = server.make_database(attacker, url=mute.url, test=False)
        until(lambda: mute.gone == mute.greeted, "the end of the first look")
        path = f"/api/postgres_databases/{database['id']}/test_connection"
        answers = [crowd.submit(attacker.post, path) for _ in range(45)]
        until(lambda: mute.greeted > AT_ONCE, "the probes")

        assert httpx.get(f"{server.url}/health", timeout=2).status_code == 200
        with server.client(server.make_token(team_id=server.make_team())) as other:
            answer(other.get("/api/sinks"), 200)
            mine = server.make_database(other)
            said = other.post(f"/api/postgres_databases/{mine['id']}/test_connection")
            assert said.status_code != 429

        statuses = [future.result().status_code for future in answers]
    assert statuses.count(429) >= 45 - 2 * AT_ONCE
    assert set(statuses) <= {200, 422, 429}
    # and nothing of it is left: the connections were cut
    until(lambda: mute.gone == mute.greeted, "the end of the connections")


@pytest.mark.parametrize("what", ["test_connection", "refresh_tables"])
def test_a_call_over_its_limit_answers_a_sentence(server: Running, mute: Mute, what: str) -> None:
    with server.client() as api:
        database = server.make_database(api, url=mute.url, test=False)
        said = api.post(f"/api/postgres_databases/{database['id']}/{what}")
    assert "did not answer in 3 seconds" in said.text


def test_a_silent_destination_answers_a_sentence_and_takes_its_teams_share(
    server: Running, mute: Mute
) -> None:
    body: dict[str, Any] = {
        "type": "postgres",
        "display_name": "quiet",
        "fields": {
            "hostname": "127.0.0.1",
            "port": mute.port,
            "database": "shop",
            "username": "someone",
            "password": "secret",
        },
    }
    with server.client() as api:
        said = api.post("/v1/teams/1/destinations/test-connection", json=body)
    assert "did not answer in 3 seconds" in said.text


class Silent:
    """Never answers until it is closed."""

    def __init__(self, deaf: bool = False) -> None:
        self.deaf = deaf
        self.closed = threading.Event()

    def listen(self) -> None:
        self.closed.wait(60)

    def close(self) -> None:
        if not self.deaf:
            self.closed.set()


def give_up_on(probes: Probes, team_id: int, silent: Silent) -> None:
    with pytest.raises(NoAnswer):
        probes.ask(team_id, lambda: silent, lambda opened: opened.listen())


def test_what_cannot_be_cut_stays_its_teams_share_and_no_other_teams() -> None:
    probes = Probes(seconds=0.05, per_team=2)
    deaf = [Silent(deaf=True) for _ in range(2)]
    for each in deaf:
        give_up_on(probes, 1, each)
    with pytest.raises(RateLimited, match="not answered yet"):
        give_up_on(probes, 1, Silent())
    assert probes.ask(2, Silent, lambda opened: "an answer") == "an answer"
    for each in deaf:
        each.closed.set()
    until(lambda: not probes._unanswered[1], "the end of the threads")
    assert probes.ask(1, Silent, lambda opened: "an answer") == "an answer"


def test_a_team_that_asks_nothing_yet_finds_room_however_many_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "FIRST_COME", 3)
    monkeypatch.setattr(module, "WAITING_AT_ONCE", 4)
    probes = Probes(seconds=60.0, per_team=8)
    silent = Silent()

    def hang() -> None:
        probes.ask(1, lambda: silent, lambda opened: opened.listen())

    for _ in range(3):
        threading.Thread(target=hang, daemon=True).start()
    until(lambda: probes._unanswered[1] == 3, "the greedy team")
    with pytest.raises(RateLimited, match="Too many systems"):
        hang()
    assert probes.ask(2, Silent, lambda opened: "an answer") == "an answer"
    silent.close()
