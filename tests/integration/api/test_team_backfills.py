"""The backfills of all the team's sinks: one of them by its id alone."""

import httpx
import pytest

from tests.integration.api.running import Running, answer

NOT_FOUND = {"summary": "Not found: No `backfill` found matching the provided ID or name"}


def test_a_backfill_is_found_by_its_id_alone(server: Running, api: httpx.Client) -> None:
    path, made = server.make_backfill(api)
    found = answer(api.get(f"/api/backfills/{made['id']}"), 200)
    assert found == answer(api.get(f"{path}/{made['id']}"), 200)
    assert answer(api.get(f"/api/backfills/{made['id'].upper()}"), 200) == found


@pytest.mark.parametrize("identity", ["00000000-0000-4000-8000-000000000000", "17", "x", "é"])
def test_an_unknown_one_and_an_id_that_is_no_uuid_are_404(api: httpx.Client, identity: str) -> None:
    assert answer(api.get(f"/api/backfills/{identity}"), 404) == NOT_FOUND


def test_another_teams_backfill_is_404(server: Running, api: httpx.Client) -> None:
    _, made = server.make_backfill(api)
    token = server.make_token(team_id=server.make_team())
    with server.client(token) as stranger:
        assert answer(stranger.get(f"/api/backfills/{made['id']}"), 404) == NOT_FOUND


def test_a_transfers_backfill_is_404_by_its_uid_and_by_its_number(
    server: Running, api: httpx.Client
) -> None:
    made = server.make_transfer_backfill(api, server.make_database(api)["name"])
    uid = server.store.get_backfill(1, int(made["backfill_id"])).uid
    for identity in (uid, made["backfill_id"]):
        assert answer(api.get(f"/api/backfills/{identity}"), 404) == NOT_FOUND
