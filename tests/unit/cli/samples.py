"""Backfills as the two dialects answer them."""

from typing import Any


def sink_backfill(**changed: Any) -> dict[str, Any]:
    slices = {"total": 4, "completed": 1, "failed": 0, "running": 1}
    return {
        "id": "019f0000-0000-7000-8000-000000000001",
        "state": "active",
        "table": "public.orders",
        "sink_consumer": "orders",
        "sort_column": "id",
        "rows_initial_count": 400,
        "rows_processed_count": 100,
        "rows_ingested_count": 90,
        "rows_rejected_count": 0,
        "inserted_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "canceled_at": None,
        "completed_at": None,
        "error": None,
        "progress": 0.25,
        "rows_per_second": 50.0,
        "eta_seconds": 6.0,
        "slices": slices,
        **changed,
    }


def transfer_backfill(**changed: Any) -> dict[str, Any]:
    return {
        "transfer_backfill_id": 12,
        "transfer_id": 3,
        "range_start_date": "2026-01-01",
        "range_end_date": "2026-01-04",
        "status": "RUNNING",
        "transfer_runs_total": 4,
        "transfer_runs_completed": 1,
        "transfer_runs_failed": 0,
        "error_report": [],
        "progress": 0.25,
        "rows_total": 10,
        "rows_rejected": 0,
        "rows_per_second": None,
        "eta_seconds": None,
        "paused_time": None,
        **changed,
    }
