"""Slices read back: pages, runs of a transfer, dates."""

from datetime import date, timedelta

import pytest

from refill.domain.backfill import Origin
from refill.domain.errors import Invalid, NotFound
from refill.domain.slice import Dated, SliceState
from refill.store.port import Store
from refill.store.records import PackLimits
from tests.contract.store.factories import (
    FIRST,
    dated_slices,
    dates_from,
    done,
    failed,
    finish,
    key_slices,
    new_sink_backfill,
    new_transfer_backfill,
    plan,
    run_all,
)

DAY = timedelta(days=1)


def days_of(runs: tuple[tuple[object, Origin], ...]) -> list[date]:
    return [run.extent.date for run, _ in runs]  # type: ignore[attr-defined]


def test_slices_come_in_pages_and_by_state(store: Store) -> None:
    made = plan(store, new_sink_backfill(), key_slices(5))
    page = store.list_slices(made.id, limit=2)
    assert [part.index for part in page.items] == [0, 1]
    page = store.list_slices(made.id, limit=2, cursor=page.next_cursor)
    assert [part.index for part in page.items] == [2, 3]
    page = store.list_slices(made.id, limit=2, cursor=page.next_cursor)
    assert [part.index for part in page.items] == [4]
    assert page.next_cursor is None
    assert store.list_slices(made.id, states=[SliceState.FAILED]).items == ()
    with pytest.raises(Invalid):
        store.list_slices(made.id, cursor="?")


def test_runs_of_a_transfer_are_listed_recurring_ones_too(store: Store) -> None:
    plan(store, new_transfer_backfill(days=3), dated_slices(dates_from(FIRST, 3)))
    plan(
        store,
        new_transfer_backfill(origin=Origin.SCHEDULE, holds=(), first=date(2026, 2, 1)),
        dated_slices([date(2026, 2, 1)]),
    )
    plan(
        store,
        new_transfer_backfill(pipeline_id="8", first=date(2026, 3, 1)),
        dated_slices([date(2026, 3, 1)], target="other"),
    )
    now = store.now()
    window = {"start": now - DAY, "end": now + DAY}
    runs = store.list_runs(1, 7, **window)  # type: ignore[arg-type]
    assert days_of(runs) == [date(2026, 2, 1), *reversed(dates_from(FIRST, 3))]
    assert [origin for _, origin in runs] == [Origin.SCHEDULE, *[Origin.REQUEST] * 3]
    up = store.list_runs(1, 7, **window, sort_field="data_date", descending=False, limit=2)  # type: ignore[arg-type]
    assert days_of(up) == [date(2026, 1, 1), date(2026, 1, 2)]
    more = store.list_runs(
        1,
        7,
        **window,  # type: ignore[arg-type]
        sort_field="data_date",
        descending=False,
        limit=2,
        offset=2,
    )
    assert days_of(more) == [date(2026, 1, 3), date(2026, 2, 1)]
    assert store.list_runs(1, 7, start=now - 2 * DAY, end=now - DAY) == ()
    assert store.list_runs(2, 7, **window) == ()  # type: ignore[arg-type]


@pytest.mark.parametrize("descending", [True, False])
def test_runs_without_an_end_come_last_on_both_stores(store: Store, descending: bool) -> None:
    plan(store, new_transfer_backfill(days=4), dated_slices(dates_from(FIRST, 4)))
    pack = store.claim_pack("w", PackLimits(slots=1), 30)
    assert pack is not None
    finish(store, pack, done)
    now = store.now()
    runs = store.list_runs(
        1, 7, start=now - DAY, end=now + DAY, sort_field="ended_time", descending=descending
    )
    assert [run.ended_at is None for run, _ in runs] == [False, False, True, True]


def test_only_runs_with_issues(store: Store) -> None:
    plan(store, new_transfer_backfill(days=3), dated_slices(dates_from(FIRST, 3)))
    run_all(store, lambda c: failed(c) if c.slice.index == 1 else done(c))
    now = store.now()
    runs = store.list_runs(1, 7, start=now - DAY, end=now + DAY, issues_only=True)
    assert days_of(runs) == [date(2026, 1, 2)]


def test_an_unknown_sort_field_is_invalid(store: Store) -> None:
    with pytest.raises(Invalid) as caught:
        store.list_runs(1, 7, start=store.now(), end=store.now(), sort_field="color")
    assert "sort_field" in caught.value.fields


def test_a_run_comes_with_its_backfill(store: Store) -> None:
    made = plan(store, new_transfer_backfill(days=1), dated_slices([FIRST]))
    run_id = store.list_slices(made.id).items[0].id
    run, backfill = store.get_run(1, run_id)
    assert run.extent == Dated(date=FIRST)
    assert backfill == made
    with pytest.raises(NotFound):
        store.get_run(2, run_id)
    of_sink = plan(store, new_sink_backfill(), key_slices(1))
    with pytest.raises(NotFound):
        store.get_run(1, store.list_slices(of_sink.id).items[0].id)


def test_completed_dates_carry_what_the_newest_run_delivered(store: Store) -> None:
    plan(store, new_transfer_backfill(days=2), dated_slices(dates_from(FIRST, 2)))
    run_all(store)
    plan(store, new_transfer_backfill(days=1), dated_slices([FIRST]))
    run_all(store, lambda c: done(c).model_copy(update={"rows_delivered": 77}))
    assert store.completed_dates(7) == {date(2026, 1, 1): 77, date(2026, 1, 2): 10}
    assert store.completed_dates(8) == {}


def test_failed_dates_are_those_whose_newest_run_failed(store: Store) -> None:
    plan(store, new_transfer_backfill(days=3), dated_slices(dates_from(FIRST, 3)))
    run_all(store, failed)
    plan(store, new_transfer_backfill(days=1), dated_slices([FIRST]))
    run_all(store)
    dropped = plan(
        store,
        new_transfer_backfill(days=1, first=date(2026, 1, 2)),
        dated_slices([date(2026, 1, 2)]),
    )
    store.cancel_backfill(1, dropped.id, None)
    assert store.failed_dates(7) == {date(2026, 1, 2), date(2026, 1, 3)}
    plan(
        store,
        new_transfer_backfill(days=1, first=date(2026, 1, 3)),
        dated_slices([date(2026, 1, 3)]),
    )
    assert store.failed_dates(7) == {date(2026, 1, 2)}


def test_the_day_of_a_transfers_last_run(store: Store) -> None:
    assert store.last_run_days(1) == {}
    plan(store, new_transfer_backfill(days=2), dated_slices(dates_from(FIRST, 2)))
    assert store.last_run_days(1) == {}
    run_all(store)
    assert store.last_run_days(1) == {7: store.now().date()}
    assert store.last_run_days(2) == {}
