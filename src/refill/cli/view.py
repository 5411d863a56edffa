"""A backfill as the commands show it, whichever dialect it came through."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from refill.cli.output import ExitCode

ENDED = ("completed", "failed", "cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    id: str
    kind: str
    pipeline: str
    subject: str  # the table, or the range of dates
    state: str
    fraction: float
    rows: int
    rows_rejected: int = 0
    rows_per_second: float | None
    eta_seconds: float | None
    slices_total: int
    slices_completed: int
    slices_failed: int
    error: str | None
    raw: Mapping[str, Any] = field(repr=False)

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def exit_code(self) -> ExitCode:
        if self.state == "cancelled":
            return ExitCode.CANCELLED
        if self.state == "failed":
            dated = self.kind == "transfer" and self.slices_failed
            return ExitCode.FAILED_DATES if dated else ExitCode.ERROR
        return ExitCode.DONE


def view_sink_backfill(raw: Mapping[str, Any]) -> View:
    slices = raw["slices"]
    return View(
        id=raw["id"],
        kind="sink",
        pipeline=raw["sink_consumer"],
        subject=raw["table"] or "",
        state=raw["state"],
        fraction=raw["progress"],
        rows=raw["rows_processed_count"],
        rows_rejected=raw["rows_rejected_count"],
        rows_per_second=raw["rows_per_second"],
        eta_seconds=raw["eta_seconds"],
        slices_total=slices["total"],
        slices_completed=slices["completed"],
        slices_failed=slices["failed"],
        error=raw["error"],
        raw=raw,
    )


def view_transfer_backfill(raw: Mapping[str, Any]) -> View:
    state = "paused" if raw.get("paused_time") else str(raw["status"]).lower()
    errors = raw["error_report"] or []
    first = f"{errors[0]['transfer_run_date']}: {errors[0]['error']}" if errors else None
    return View(
        id=str(raw["transfer_backfill_id"]),
        kind="transfer",
        pipeline=f"transfer {raw['transfer_id']}",
        subject=f"{raw['range_start_date']} … {raw['range_end_date']}",
        state=state,
        fraction=raw["progress"],
        rows=raw["rows_total"],
        rows_rejected=raw["rows_rejected"],
        rows_per_second=raw["rows_per_second"],
        eta_seconds=raw["eta_seconds"],
        slices_total=raw["transfer_runs_total"],
        slices_completed=raw["transfer_runs_completed"],
        slices_failed=raw["transfer_runs_failed"],
        error=first,
        raw=raw,
    )


def spoken_seconds(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
