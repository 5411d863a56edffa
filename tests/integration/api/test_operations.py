"""What operators look at."""

import httpx
import pytest

from refill.domain.slice import Fault
from refill.store import pipeline_gauges
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


def test_metrics_are_labelled_by_pipeline(server: Running, api: httpx.Client) -> None:
    path, _ = server.make_backfill(api)
    sink = path.split("/")[3]
    labels = f'kind="sink",pipeline="{sink}"'
    text = httpx.get(f"{server.url}/metrics").text
    assert f'refill_pipeline_state{{{labels},status="created",team="1"}} 1.0' in text
    lag = next(line for line in text.splitlines() if f"lag_seconds{{{labels}" in line)
    assert float(lag.split()[-1]) >= 0
    server.plan()
    server.run(fault=Fault(code="error", message="no", transient=False))
    text = httpx.get(f"{server.url}/metrics").text
    assert f'refill_pipeline_state{{{labels},status="failed",team="1"}} 1.0' in text
    assert f'refill_pipeline_slices_failed{{{labels},team="1"}} 1.0' in text
    assert f'refill_pipeline_failures{{{labels},team="1"}} 1.0' in text
    assert f'refill_pipeline_lag_seconds{{{labels},team="1"}} 0.0' in text
    assert f'refill_pipeline_rows_rejected{{{labels},team="1"}} 0.0' in text
    answer(api.delete(path.removesuffix("/backfills")), 200)
    assert labels not in httpx.get(f"{server.url}/metrics").text


def test_the_number_of_labelled_pipelines_is_bounded(
    server: Running, api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        server.make_backfill(api)
    monkeypatch.setattr(pipeline_gauges, "MAX_PIPELINES", 2)
    gauges = server.store.gauges()
    assert len(gauges.pipelines) == 2
    assert gauges.pipelines_left_out >= 1
