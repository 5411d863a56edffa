"""Which dates a backfill of a transfer runs, in which order, and which it skips and why."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from refill.domain.backfill import Order
from refill.domain.errors import Invalid


class Only(StrEnum):
    """Which dates of the range are wanted."""

    ALL = "all"
    MISSING = "missing"  # no completed run
    FAILED = "failed"  # the newest run failed


@dataclass(frozen=True, slots=True, kw_only=True)
class DateRange:
    """Both ends belong to it."""

    start: date
    end: date

    @property
    def days(self) -> int:
        return (self.end - self.start).days + 1

    def dates(self) -> Iterable[date]:
        """Oldest first."""
        return (self.start + timedelta(days=offset) for offset in range(self.days))


@dataclass(frozen=True, slots=True, kw_only=True)
class DateDecision:
    """What becomes of one date. `replaces`: the rows that its last completed run delivered."""

    date: date
    runs: bool
    reason: str
    replaces: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DatePlan:
    """Every date of the range, decided; in the order in which they run."""

    decisions: tuple[DateDecision, ...]

    @property
    def dates(self) -> tuple[date, ...]:
        return tuple(decision.date for decision in self.decisions if decision.runs)


def today_in(timezone: str, now: datetime) -> date:
    """The date that it is there now; `now` is an instant, with a zone."""
    return now.astimezone(ZoneInfo(timezone)).date()


def check_range(wanted: DateRange, *, today: date, max_days: int) -> None:
    """Invalid, with what to do, unless the range is one that can be run."""
    if wanted.start > wanted.end:
        raise Invalid.of(
            "range_start",
            f"{wanted.start} is after range_end {wanted.end}; swap them.",
        )
    if wanted.days > max_days:
        raise Invalid.of(
            "range_end",
            f"the range has {wanted.days} days, at most {max_days} are allowed; "
            "ask for several shorter ranges.",
        )
    if wanted.end > today:
        raise Invalid.of(
            "range_end",
            f"{wanted.end} is after today, {today}, in the transfer's time zone; "
            f"end the range at {today} or before.",
        )


def decide_dates(
    wanted: DateRange,
    *,
    order: Order = Order.NEWEST_FIRST,
    only: Only = Only.ALL,
    exclude: Collection[date] = (),
    completed: Mapping[date, int] | None = None,
    failed: Collection[date] = (),
) -> DatePlan:
    """The same function behind a dry run and a real one."""
    done = completed or {}
    left_out = frozenset(exclude)

    def decide(day: date) -> DateDecision:
        if day in left_out:
            return DateDecision(date=day, runs=False, reason="excluded")
        if only is Only.MISSING and day in done:
            return DateDecision(date=day, runs=False, reason="has a completed run")
        if only is Only.FAILED and day not in failed:
            return DateDecision(date=day, runs=False, reason="its newest run did not fail")
        if day in failed:
            reason = "its newest run failed"
        elif day in done:
            reason = "replaces what is there"
        else:
            reason = "has no completed run"
        return DateDecision(date=day, runs=True, reason=reason, replaces=done.get(day))

    days = sorted(wanted.dates(), reverse=order is Order.NEWEST_FIRST)
    return DatePlan(decisions=tuple(decide(day) for day in days))


def dates_before(today: date, days: int) -> tuple[date, ...]:
    """The refresh window of a schedule: the last `days` whole dates, newest first."""
    return tuple(today - timedelta(days=back) for back in range(1, days + 1))
