"""Recurring runs: which transfers are due, and the backfills that their schedules make."""

import calendar
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Protocol

from refill.domain.backfill import Backfill
from refill.domain.errors import RefillError
from refill.domain.pipeline import Schedule, Transfer
from refill.logs import about
from refill.planning.dates import dates_before, today_in
from refill.service.identity import repeatable_uid
from refill.store.records import NewBackfill

INTERVALS = ("hourly", "daily", "weekly", "monthly")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A transfer whose time has come, and how many dates before today it refreshes."""

    transfer: Transfer
    refresh_window: int


def last_due(schedule: Schedule, now: datetime) -> datetime:
    """The latest instant, not after `now` (UTC), at which the schedule asks for a run."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    if schedule.run_interval == "hourly":
        return hour
    at = hour.replace(hour=schedule.run_hour or 0)
    if schedule.run_interval == "daily":
        return at if at <= now else at - timedelta(days=1)
    if schedule.run_interval == "weekly":
        at -= timedelta(days=(at.isoweekday() - (schedule.run_weekday or 1)) % 7)
        return at if at <= now else at - timedelta(days=7)
    this_month = _in_month(at, schedule.run_day or 1)
    if this_month <= now:
        return this_month
    return _in_month(at.replace(day=1) - timedelta(days=1), schedule.run_day or 1)


def find_due(transfers: Iterable[Transfer], now: datetime) -> list[Due]:
    """Those with an instant of theirs since they last fired, or since they were made.

    However many instants were missed (a stopped worker, a paused transfer), one run makes up
    for all of them.
    """
    found = []
    for transfer in transfers:
        since = transfer.schedule_fired_at or transfer.created_at
        windows = [
            schedule.refresh_window
            for schedule in transfer.schedule
            if last_due(schedule, now) > since
        ]
        if windows and not transfer.paused:
            found.append(Due(transfer=transfer, refresh_window=max(windows)))
    return found


class ScheduleStore(Protocol):
    """The part of the store that firing needs."""

    def list_scheduled_transfers(self) -> tuple[Transfer, ...]: ...
    def mark_schedule_fired(
        self, transfer_id: int, fired_at: datetime, last: datetime | None
    ) -> bool: ...
    def insert_backfill(self, new: NewBackfill) -> Backfill: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedules:
    """`fire_due` is called by every worker every few seconds; each due time fires once."""

    store: ScheduleStore
    # (transfer, dates) → the backfill to insert, with origin = schedule
    prepare: Callable[[Transfer, Sequence[date]], NewBackfill]

    def fire_due(self, now: datetime) -> list[Backfill]:
        """`now` is the store's time, so that a worker with a wrong clock fires nothing early."""
        fired = []
        for due in find_due(self.store.list_scheduled_transfers(), now):
            try:
                backfill = self._fire(due, now)
            except RefillError as error:
                # one transfer that cannot be prepared must not hold up the others
                log.warning(
                    "schedule not fired: %s",
                    error.message,
                    extra={"action": "schedule_failed", "transfer_id": due.transfer.id},
                )
                continue
            if backfill is not None:
                fired.append(backfill)
        return fired

    def _fire(self, due: Due, now: datetime) -> Backfill | None:
        transfer = due.transfer
        dates = dates_before(today_in(transfer.timezone, now), due.refresh_window)
        last = transfer.schedule_fired_at
        # inserted before it is marked, under an id that this due time always has: whoever dies in
        # between, or gets no answer, is followed by one who finds the backfill and marks it
        uid = repeatable_uid(
            transfer.team_id,
            f"schedule of transfer {transfer.id}",
            (last or transfer.created_at).isoformat(),
        )
        backfill = self.store.insert_backfill(replace(self.prepare(transfer, dates), uid=uid))
        if not self.store.mark_schedule_fired(transfer.id, now, last):
            return None
        log.info(
            "schedule fired",
            extra={
                **about("schedule_fired", backfill),
                "transfer_id": transfer.id,
                "dates": len(dates),
            },
        )
        return backfill


def describe_schedule(schedules: Sequence[Schedule]) -> str:
    """A word or two for a list: "daily", "weekly, monthly"; "none" without a schedule."""
    return ", ".join(dict.fromkeys(schedule.run_interval for schedule in schedules)) or "none"


def _in_month(month: datetime, day: int) -> datetime:
    """That day of the month; the last one where the month is shorter."""
    last_day = calendar.monthrange(month.year, month.month)[1]
    return month.replace(day=min(day, last_day))
