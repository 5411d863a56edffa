"""What operators look at."""

import httpx

from tests.integration.api.running import Running, answer


def test_health_needs_no_key(server: Running) -> None:
    health = answer(httpx.get(f"{server.url}/health"), 200)
    assert health["ok"] is True
    assert health["store"]["backend"] == "sqlite"


def test_metrics_are_read_from_the_store(server: Running, api: httpx.Client) -> None:
    server.make_backfill(api)
    server.plan()
    server.run(rows=7)
    text = httpx.get(f"{server.url}/metrics").text
    assert "refill_rows_read_total 7.0" in text
    assert 'refill_backfills{status="completed"} 1.0' in text
    assert 'refill_slices{state="completed"} 1.0' in text
    for name in ("slice_attempts", "leases_lost", "slice_seconds", "slices_completed"):
        assert f"refill_{name}_total " in text
    assert "refill_queue_age_seconds " in text
