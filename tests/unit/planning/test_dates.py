"""Which dates a backfill runs."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refill.domain.backfill import Order
from refill.domain.errors import Invalid
from refill.planning.dates import (
    DateRange,
    Only,
    check_range,
    dates_before,
    decide_dates,
    today_in,
)

DAYS = st.dates(min_value=date(1990, 1, 1), max_value=date(2100, 12, 31))
TODAY = date(2024, 6, 15)


@st.composite
def ranges(draw: st.DrawFn) -> DateRange:
    start = draw(DAYS)
    return DateRange(start=start, end=start + timedelta(days=draw(st.integers(0, 400))))


@given(ranges())
def test_every_date_of_the_range_runs_once(wanted: DateRange) -> None:
    dates = decide_dates(wanted).dates
    assert len(dates) == len(set(dates)) == wanted.days
    assert (min(dates), max(dates)) == (wanted.start, wanted.end)


@given(ranges(), st.sampled_from(Order))
def test_dates_run_in_the_order_asked_for(wanted: DateRange, order: Order) -> None:
    dates = decide_dates(wanted, order=order).dates
    assert list(dates) == sorted(dates, reverse=order is Order.NEWEST_FIRST)


@given(ranges(), st.sets(DAYS, max_size=20), st.sampled_from(Only), st.data())
def test_a_date_runs_exactly_when_nothing_speaks_against_it(
    wanted: DateRange, exclude: set[date], only: Only, data: st.DataObject
) -> None:
    inside = st.sets(st.dates(wanted.start, wanted.end), max_size=30)
    completed = dict.fromkeys(data.draw(inside), 7)
    failed = data.draw(inside)
    exclude |= data.draw(inside)
    plan = decide_dates(wanted, only=only, exclude=exclude, completed=completed, failed=failed)
    assert len(plan.decisions) == wanted.days
    for decision in plan.decisions:
        wished = {
            Only.ALL: True,
            Only.MISSING: decision.date not in completed,
            Only.FAILED: decision.date in failed,
        }[only]
        assert decision.runs == (wished and decision.date not in exclude)
        assert decision.reason
        if decision.runs:
            assert decision.replaces == completed.get(decision.date)


@pytest.mark.parametrize(
    ("only", "reasons"),
    [
        (
            Only.ALL,
            [
                (True, "replaces what is there", 7),
                (True, "its newest run failed", None),
                (True, "its newest run failed", 9),
                (True, "has no completed run", None),
                (False, "excluded", None),
            ],
        ),
        (
            Only.MISSING,
            [
                (False, "has a completed run", None),
                (True, "its newest run failed", None),
                (False, "has a completed run", None),
                (True, "has no completed run", None),
                (False, "excluded", None),
            ],
        ),
        (
            Only.FAILED,
            [
                (False, "its newest run did not fail", None),
                (True, "its newest run failed", None),
                (True, "its newest run failed", 9),
                (False, "its newest run did not fail", None),
                (False, "excluded", None),
            ],
        ),
    ],
)
def test_each_date_says_why_it_runs_or_does_not(
    only: Only, reasons: list[tuple[bool, str, int | None]]
) -> None:
    days = [TODAY + timedelta(days=number) for number in range(5)]
    plan = decide_dates(
        DateRange(start=days[0], end=days[4]),
        order=Order.OLDEST_FIRST,
        only=only,
        completed={days[0]: 7, days[2]: 9},
        failed={days[1], days[2], days[4]},
        exclude={days[4]},
    )
    assert [(each.runs, each.reason, each.replaces) for each in plan.decisions] == reasons


@given(DAYS, DAYS, st.integers(1, 5000))
@example(TODAY, TODAY, 1)
@example(TODAY, TODAY + timedelta(days=1), 5)
@example(TODAY - timedelta(days=4), TODAY, 5)
@example(TODAY - timedelta(days=5), TODAY, 5)
def test_a_range_is_accepted_exactly_when_it_can_be_run(
    start: date, end: date, max_days: int
) -> None:
    good = start <= end <= TODAY and (end - start).days + 1 <= max_days
    if good:
        check_range(DateRange(start=start, end=end), today=TODAY, max_days=max_days)
    else:
        with pytest.raises(Invalid):
            check_range(DateRange(start=start, end=end), today=TODAY, max_days=max_days)


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        (date(2024, 2, 2), date(2024, 2, 1), "swap them"),
        (date(2024, 6, 1), date(2024, 6, 16), "after today, 2024-06-15"),
        (date(2023, 1, 1), date(2024, 6, 1), "at most 365"),
    ],
)
def test_a_refusal_says_what_to_do(start: date, end: date, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        check_range(DateRange(start=start, end=end), today=TODAY, max_days=365)


def test_today_is_the_date_in_the_zone_of_the_transfer() -> None:
    now = datetime(2024, 6, 15, 23, 30, tzinfo=UTC)
    assert today_in("UTC", now) == date(2024, 6, 15)
    assert today_in("Pacific/Auckland", now) == date(2024, 6, 16)
    assert today_in("America/Los_Angeles", now) == date(2024, 6, 15)


@given(DAYS, st.integers(1, 60))
def test_a_refresh_window_is_the_last_whole_dates(today: date, days: int) -> None:
    window = dates_before(today, days)
    assert len(window) == days
    assert window[0] == today - timedelta(days=1)
    assert list(window) == sorted(window, reverse=True)
