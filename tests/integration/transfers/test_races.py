"""Many at once: one backfill, one firing."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx

from refill.domain.backfill import Origin
from tests.integration.transfers.stage import FAR_AHEAD, LONG_AGO, Stage, answer


def test_many_identical_creates_make_one_backfill(stage: Stage) -> None:
    transfer = stage.make_transfer()
    body = {"range_start": "2024-01-01", "range_end": "2024-01-31"}

    def create(_: int) -> httpx.Response:
        with stage.client() as client:
            return client.post(f"/transfers/{transfer}/backfills", json=body)

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(create, range(20)))
    assert sorted(response.status_code for response in answers) == [200] + [422] * 19
    (made,) = stage.service.transfer_backfills.list_incomplete(1)
    for response in answers:
        if response.status_code == 422:
            assert f"Backfill {made.id} " in response.json()["error"]["description"]


def test_many_with_the_same_key_all_get_the_same_backfill(stage: Stage) -> None:
    transfer = stage.make_transfer()
    body = {"range_start": "2024-01-01", "range_end": "2024-01-31"}

    def create(_: int) -> int:
        with stage.client() as client:
            headers = {"Idempotency-Key": "the-same"}
            made = client.post(f"/transfers/{transfer}/backfills", json=body, headers=headers)
            return int(answer(made)["data"]["transfer_backfill_id"])

    with ThreadPoolExecutor(10) as pool:
        assert len(set(pool.map(create, range(10)))) == 1


def test_two_workers_that_fire_at_once_make_one_set_of_runs(stage: Stage) -> None:
    transfer = stage.make_transfer(schedule=[{"run_interval": "hourly", "refresh_window": 3}])
    later = stage.store.now() + timedelta(hours=2)
    with ThreadPoolExecutor(4) as pool:
        fired = [
            backfill
            for found in pool.map(lambda _: stage.service.schedules.fire_due(later), range(4))
            for backfill in found
        ]
    assert [backfill.origin for backfill in fired] == [Origin.SCHEDULE]
    stage.plan_and_run()
    runs = stage.store.list_runs(1, transfer, start=LONG_AGO, end=FAR_AHEAD)
    assert len(runs) == 3


def test_a_schedule_fires_again_at_its_next_time_and_not_while_paused(stage: Stage) -> None:
    transfer = stage.make_transfer(schedule=[{"run_interval": "hourly"}])
    later = stage.store.now() + timedelta(hours=2)
    fire = stage.service.schedules.fire_due
    assert len(fire(later)) == 1
    assert len(fire(later + timedelta(hours=1))) == 1
    stage.service.transfers.set_paused(1, transfer, True)
    assert fire(later + timedelta(hours=5)) == []
    stage.service.transfers.set_paused(1, transfer, False)
    assert len(fire(later + timedelta(hours=5))) == 1


def test_a_recurring_run_does_not_stand_in_the_way_of_a_backfill(stage: Stage) -> None:
    transfer = stage.make_transfer(schedule=[{"run_interval": "hourly"}])
    now = stage.store.now()
    stage.service.schedules.fire_due(now + timedelta(hours=2))
    yesterday = ((now + timedelta(hours=2)) - timedelta(days=1)).date().isoformat()
    made = stage.make_backfill(transfer, yesterday, yesterday)
    assert made["status"] == "CREATED"
