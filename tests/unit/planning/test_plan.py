from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refill.connectors.postgres.bounds import PageBounds, PageRange, cut_pages
from refill.connectors.postgres.native import Pages
from refill.domain.slice import Dated, KeyRange, NativeExtent, NullKeys, Whole
from refill.domain.spec import KeyedRead
from refill.domain.table import Keyless, Table
from refill.planning.bounds import Bounds
from refill.planning.plan import PlannedExtent, PlanSettings, plan_dates, plan_table

ORDERS = Table(schema_name="public", name="orders", columns=(), keyless=Keyless.CUT)
# more than one slice of however few rows
MANY = PlanSettings(slots=2, smallest_slice_rows=1)


def make_read(**changes: object) -> KeyedRead:
    fields: dict[str, object] = {"table": ORDERS, "sort_columns": ("id",)}
    return KeyedRead.model_validate(fields | changes)


def plan(bounds: Bounds, read: KeyedRead, settings: PlanSettings) -> tuple[PlannedExtent, ...]:
    return plan_table(read, bounds, settings, _never)


def _never(slices: int) -> tuple[PlannedExtent, ...]:
    raise AssertionError("a table with a key is not cut by its source")


def make_bounds(rows: int, sample: int = 1000, **changes: object) -> Bounds:
    boundaries = tuple((str(key),) for key in range(sample))
    return Bounds(rows_estimated=rows, boundaries=boundaries, **changes)  # type: ignore[arg-type]


@given(rows=st.integers(0, 10**9), sample=st.integers(0, 3000), slots=st.integers(1, 16))
def test_key_slices_join_without_a_gap_and_are_open_at_both_ends(
    rows: int, sample: int, slots: int
) -> None:
    planned = plan(make_bounds(rows, sample), make_read(), PlanSettings(slots=slots))
    ranges = [part.extent for part in planned]
    if ranges == [Whole()]:
        return
    assert all(isinstance(part, KeyRange) for part in ranges)
    assert ranges[0].lower is None
    assert ranges[-1].upper is None
    inner = [part.upper for part in ranges[:-1]]
    assert inner == [part.lower for part in ranges[1:]]
    assert len(set(inner)) == len(inner)
    assert None not in inner
    assert not any(part.lower_inclusive for part in ranges)
    assert rows <= sum(part.rows_estimated for part in planned) < rows + len(planned)


def test_a_small_table_gives_every_slot_several_slices() -> None:
    assert len(plan(make_bounds(1_000_000), make_read(), PlanSettings(slots=2))) == 8


def test_a_tiny_table_is_read_whole_its_null_keys_too() -> None:
    bounds = make_bounds(100, may_have_nulls=True)
    assert [part.extent for part in plan(bounds, make_read(), PlanSettings(slots=2))] == [Whole()]


@pytest.mark.parametrize(
    ("ends", "extent"),
    [
        (("5", "7"), KeyRange(lower=("5",), upper=("7",), lower_inclusive=True)),
        (("5", None), KeyRange(lower=("5",), lower_inclusive=True)),
        ((None, "7"), KeyRange(upper=("7",))),
    ],
)
def test_a_tiny_range_is_one_slice_between_its_ends(
    ends: tuple[str | None, str | None], extent: KeyRange
) -> None:
    start, end = ends
    read = make_read(start_position=start, end_position=end)
    planned = plan(make_bounds(100, may_have_nulls=True), read, PlanSettings(slots=2))
    assert planned == (PlannedExtent(extent=extent, rows_estimated=100),)


def test_what_has_no_key_is_cut_by_its_source_where_that_can() -> None:
    wanted: list[int] = []

    def cut(slices: int) -> tuple[PlannedExtent, ...]:
        wanted.append(slices)
        return ()

    assert plan_table(make_read(sort_columns=()), make_bounds(100), MANY, cut) == ()
    assert wanted == [8]


def test_what_has_no_key_and_cannot_be_cut_is_read_whole_however_large() -> None:
    document = ORDERS.model_copy(update={"keyless": Keyless.WHOLE})
    planned = plan(make_bounds(10**9), make_read(table=document, sort_columns=()), MANY)
    assert planned == (PlannedExtent(extent=Whole(), rows_estimated=10**9),)


def test_wide_rows_make_more_slices() -> None:
    settings = PlanSettings(slots=1, bytes_per_slice=1024, rows_per_slice=10**9)
    assert len(plan(make_bounds(100, bytes_estimated=10_240), make_read(), settings)) == 10


def test_rows_with_a_null_in_the_key_are_the_last_slice() -> None:
    planned = plan(make_bounds(10, may_have_nulls=True), make_read(), MANY)
    assert isinstance(planned[-1].extent, NullKeys)


def test_a_partial_backfill_begins_and_ends_inclusively_and_leaves_nulls_out() -> None:
    read = make_read(start_position="5", end_position="900")
    planned = plan(make_bounds(1_000_000, may_have_nulls=True), read, PlanSettings())
    first, last = planned[0].extent, planned[-1].extent
    assert isinstance(first, KeyRange)
    assert isinstance(last, KeyRange)
    assert (first.lower, first.lower_inclusive) == (("5",), True)
    assert last.upper == ("900",)
    assert sum(part.extent.lower_inclusive for part in planned) == 1  # type: ignore[union-attr]


@given(pages=st.lists(st.integers(0, 10_000), min_size=1, max_size=5), slots=st.integers(1, 8))
def test_page_ranges_cover_every_page_once(pages: list[int], slots: int) -> None:
    parts = tuple(
        PageRange(relation=f"r{number}", pages=count, rows_estimated=count * 100)
        for number, count in enumerate(pages)
    )
    bounds = PageBounds(rows_estimated=sum(pages) * 100, pages=parts)
    wanted = PlanSettings(slots=slots).slices_wanted(bounds)
    found = [
        Pages.of(piece.extent)
        for piece in cut_pages(bounds, wanted, "snap")
        if isinstance(piece.extent, NativeExtent)
    ]
    assert {piece.snapshot for piece in found} == {"snap"}
    for part in parts:
        ranges = [piece for piece in found if piece.relation == part.relation]
        assert ranges[0].first_page == 0
        assert ranges[-1].end_page is None
        assert [one.end_page for one in ranges[:-1]] == [one.first_page for one in ranges[1:]]


def test_dates_become_slices_in_the_order_they_run() -> None:
    dates = (date(2024, 1, 2), date(2024, 1, 1))
    planned = plan_dates(dates)
    assert [part.extent for part in planned] == [Dated(date=day) for day in dates]


def test_a_backfill_that_is_held_back_has_shorter_slices() -> None:
    settings = PlanSettings(slots=1).paced(1000)
    planned = plan(make_bounds(1_000_000), make_read(), settings)
    assert len(planned) == 200
    assert PlanSettings().paced(None) == PlanSettings()
    assert PlanSettings().paced(10**9) == PlanSettings()
