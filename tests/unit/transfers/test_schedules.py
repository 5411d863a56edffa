"""When transfers run by themselves."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refill.domain.backfill import Backfill
from refill.domain.errors import Invalid, StoreBusy
from refill.domain.pipeline import Schedule, Transfer
from refill.service.schedules import INTERVALS, Schedules, describe_schedule, find_due, last_due
from refill.store.records import NewBackfill

MADE = datetime(2024, 1, 1, tzinfo=UTC)
NOW = datetime(2024, 6, 15, 10, 30, tzinfo=UTC)  # a Saturday

INSTANTS = st.datetimes(datetime(2000, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))
SCHEDULES = st.builds(
    Schedule,
    run_interval=st.sampled_from(INTERVALS),
    run_hour=st.integers(0, 23),
    run_weekday=st.integers(1, 7),
    run_day=st.integers(1, 31),
)
LONGEST = {"hourly": 1 / 24, "daily": 1, "weekly": 7, "monthly": 31}


def make_transfer(**changes: Any) -> Transfer:
    return replace(
        Transfer(
            id=1,
            team_id=1,
            name="orders",
            database_id="d",
            destination_id=1,
            destination_table="orders",
            created_at=MADE,
            created_user_id=1,
            updated_at=MADE,
            schedule=(Schedule(run_interval="daily", run_hour=9),),
        ),
        **changes,
    )


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (Schedule(run_interval="hourly"), datetime(2024, 6, 15, 10)),
        (Schedule(run_interval="daily", run_hour=9), datetime(2024, 6, 15, 9)),
        (Schedule(run_interval="daily", run_hour=22), datetime(2024, 6, 14, 22)),
        (Schedule(run_interval="weekly", run_hour=9, run_weekday=6), datetime(2024, 6, 15, 9)),
        (Schedule(run_interval="weekly", run_hour=11, run_weekday=6), datetime(2024, 6, 8, 11)),
        (Schedule(run_interval="weekly", run_hour=0, run_weekday=7), datetime(2024, 6, 9)),
        (Schedule(run_interval="monthly", run_hour=3, run_day=15), datetime(2024, 6, 15, 3)),
        (Schedule(run_interval="monthly", run_hour=3, run_day=31), datetime(2024, 5, 31, 3)),
    ],
)
def test_the_last_due_instant(schedule: Schedule, expected: datetime) -> None:
    assert last_due(schedule, NOW) == expected.replace(tzinfo=UTC)


def test_a_month_without_that_day_runs_on_its_last_one() -> None:
    schedule = Schedule(run_interval="monthly", run_hour=0, run_day=31)
    assert last_due(schedule, datetime(2023, 3, 1, tzinfo=UTC)) == datetime(2023, 2, 28, tzinfo=UTC)


@given(SCHEDULES, INSTANTS)
def test_a_due_instant_is_never_ahead_and_never_older_than_its_interval(
    schedule: Schedule, now: datetime
) -> None:
    due = last_due(schedule, now)
    assert now - timedelta(days=LONGEST[schedule.run_interval]) <= due <= now
    assert last_due(schedule, due) == due


def test_a_transfer_is_due_once_for_all_instants_it_missed() -> None:
    transfer = make_transfer()
    assert [due.transfer for due in find_due([transfer], NOW)] == [transfer]
    assert not find_due([replace(transfer, schedule_fired_at=NOW)], NOW)
    assert find_due([replace(transfer, schedule_fired_at=NOW)], NOW + timedelta(days=1))


def test_a_new_transfer_waits_for_its_first_instant() -> None:
    transfer = make_transfer(created_at=NOW - timedelta(minutes=30))
    assert not find_due([transfer], NOW)


def test_a_paused_transfer_is_not_due() -> None:
    assert not find_due([make_transfer(paused=True)], NOW)


def test_of_several_due_schedules_the_widest_window_counts() -> None:
    daily = Schedule(run_interval="daily", run_hour=9, refresh_window=2)
    weekly = Schedule(run_interval="weekly", run_hour=9, run_weekday=6, refresh_window=14)
    (due,) = find_due([make_transfer(schedule=(daily, weekly))], NOW)
    assert due.refresh_window == 14


def test_a_list_of_schedules_in_words() -> None:
    assert describe_schedule(()) == "none"
    assert describe_schedule([Schedule(run_interval="daily")]) == "daily"


@dataclass(frozen=True)
class Prepared:
    transfer: int
    dates: tuple[date, ...]
    uid: str = ""


@dataclass
class OneTransferStore:
    """Compare and set over one transfer; can be busy when a backfill is inserted or marked."""

    transfer: Transfer
    busy: bool = False
    busy_marking: bool = False
    made: dict[str, Prepared] = field(default_factory=dict)

    @property
    def inserted(self) -> list[tuple[int, tuple[date, ...]]]:
        return [(new.transfer, new.dates) for new in self.made.values()]

    def list_scheduled_transfers(self) -> tuple[Transfer, ...]:
        return (self.transfer,)

    def mark_schedule_fired(
        self, transfer_id: int, fired_at: datetime, last: datetime | None
    ) -> bool:
        if self.busy_marking:
            raise StoreBusy("The store is locked.")
        if self.transfer.schedule_fired_at != last:
            return False
        self.transfer = replace(self.transfer, schedule_fired_at=fired_at)
        return True

    def insert_backfill(self, new: NewBackfill) -> Backfill:
        if self.busy:
            raise StoreBusy("The store is locked.")
        self.made.setdefault(new.uid, cast(Prepared, new))
        return cast(Backfill, _Made())


class _Made:
    id = 1
    uid = "u-1"


def prepare(transfer: Transfer, dates: Sequence[date]) -> NewBackfill:
    return cast(NewBackfill, Prepared(transfer.id, tuple(dates)))


def test_two_workers_fire_once() -> None:
    store = OneTransferStore(make_transfer())
    seen = store.list_scheduled_transfers()

    class Stale(OneTransferStore):
        def list_scheduled_transfers(self) -> tuple[Transfer, ...]:
            return seen

        def mark_schedule_fired(
            self, transfer_id: int, fired_at: datetime, last: datetime | None
        ) -> bool:
            return store.mark_schedule_fired(transfer_id, fired_at, last)

        def insert_backfill(self, new: NewBackfill) -> Backfill:
            return store.insert_backfill(new)

    assert Schedules(store=store, prepare=prepare).fire_due(NOW)
    assert not Schedules(store=Stale(seen[0]), prepare=prepare).fire_due(NOW)
    assert store.inserted == [(1, (date(2024, 6, 14),))]


def test_the_window_is_counted_in_the_zone_of_the_transfer() -> None:
    store = OneTransferStore(make_transfer(timezone="Pacific/Kiritimati"))
    Schedules(store=store, prepare=prepare).fire_due(NOW)
    assert store.inserted == [(1, (date(2024, 6, 15),))]


def test_a_busy_store_leaves_the_transfer_due() -> None:
    store = OneTransferStore(make_transfer(), busy=True)
    schedules = Schedules(store=store, prepare=prepare)
    assert not schedules.fire_due(NOW)
    store.busy = False
    assert schedules.fire_due(NOW)


def test_one_that_was_inserted_and_not_marked_is_found_again() -> None:
    store = OneTransferStore(make_transfer(), busy_marking=True)
    schedules = Schedules(store=store, prepare=prepare)
    assert not schedules.fire_due(NOW)
    store.busy_marking = False
    assert schedules.fire_due(NOW)
    assert len(store.made) == 1
    assert schedules.fire_due(NOW + timedelta(days=1))
    assert len(store.made) == 2


def test_a_transfer_that_cannot_be_prepared_stays_due() -> None:
    def refuse(transfer: Transfer, dates: Sequence[date]) -> NewBackfill:
        raise Invalid("Its destination is gone.")

    store = OneTransferStore(make_transfer())
    assert not Schedules(store=store, prepare=refuse).fire_due(NOW)
    assert store.transfer.schedule_fired_at is None
