"""How far a backfill is, how fast it goes and when it will be done."""

from dataclasses import dataclass
from datetime import datetime

from refill.domain.backfill import CountedBackfill, Status
from refill.domain.pipeline import Kind


@dataclass(frozen=True, slots=True)
class Progress:
    fraction: float
    rows_per_second: float | None
    eta_seconds: float | None


def measure_progress(backfill: CountedBackfill, now: datetime) -> Progress:
    """Derived from the counters alone, so that every reader says the same."""
    fraction = _fraction(backfill)
    if backfill.started_at is None:
        return Progress(fraction, None, None)
    until = backfill.ended_at or backfill.paused_at or now
    seconds = (until - backfill.started_at).total_seconds() - backfill.idle_seconds
    if seconds <= 0:
        return Progress(fraction, None, None)
    rate = backfill.counters.rows_read / seconds
    running = backfill.status in (Status.SCHEDULED, Status.RUNNING)
    eta = seconds * (1 - fraction) / fraction if running and 0 < fraction < 1 else None
    return Progress(fraction, round(rate, 1), None if eta is None else round(eta, 1))


def _fraction(backfill: CountedBackfill) -> float:
    if backfill.status is Status.COMPLETED:
        return 1.0
    counters = backfill.counters
    total = counters.slices_total or backfill.slices_planned
    if not total:
        return 0.0
    ended = counters.slices_completed + (
        counters.slices_failed if backfill.kind is Kind.TRANSFER else 0
    )
    return min(ended / total, 1.0)
