from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from refill.domain.pipeline import Kind, Spec
from refill.domain.slice import CtidRange, Dated, KeyRange, NullKeys
from refill.planning.bounds import Bounds, PageRange
from refill.planning.plan import PlanSettings, plan_dates, plan_keys, plan_pages


def make_spec(**changes: object) -> Spec:
    fields: dict[str, object] = {
        "kind": Kind.SINK,
        "database_id": "d",
        "database_type": "postgres",
        "database_name": "db",
        "sink_type": "files",
        "sink_options": {},
        "sort_columns": ("id",),
    }
    return Spec.model_validate(fields | changes)


def make_bounds(rows: int, sample: int = 1000, **changes: object) -> Bounds:
    boundaries = tuple((str(key),) for key in range(sample))
    return Bounds(rows_estimated=rows, boundaries=boundaries, **changes)  # type: ignore[arg-type]


@given(rows=st.integers(0, 10**9), sample=st.integers(0, 3000), slots=st.integers(1, 16))
def test_key_slices_join_without_a_gap_and_are_open_at_both_ends(
    rows: int, sample: int, slots: int
) -> None:
    planned = plan_keys(make_bounds(rows, sample), make_spec(), PlanSettings(slots=slots))
    ranges = [part.extent for part in planned]
    assert all(isinstance(part, KeyRange) for part in ranges)
    assert ranges[0].lower is None
    assert ranges[-1].upper is None
    inner = [part.upper for part in ranges[:-1]]
    assert inner == [part.lower for part in ranges[1:]]
    assert len(set(inner)) == len(inner)
    assert None not in inner


def test_a_small_table_gives_every_slot_several_slices() -> None:
    assert len(plan_keys(make_bounds(1_000_000), make_spec(), PlanSettings(slots=2))) == 8


def test_a_tiny_table_is_one_slice() -> None:
    assert len(plan_keys(make_bounds(100), make_spec(), PlanSettings(slots=2))) == 1


def test_wide_rows_make_more_slices() -> None:
    settings = PlanSettings(slots=1, bytes_per_slice=1024, rows_per_slice=10**9)
    assert len(plan_keys(make_bounds(100, bytes_estimated=10_240), make_spec(), settings)) == 10


def test_rows_with_a_null_in_the_key_are_the_last_slice() -> None:
    planned = plan_keys(make_bounds(10, may_have_nulls=True), make_spec(), PlanSettings())
    assert isinstance(planned[-1].extent, NullKeys)


def test_a_partial_backfill_begins_and_ends_inclusively_and_leaves_nulls_out() -> None:
    spec = make_spec(start_position="5", end_position="900")
    planned = plan_keys(make_bounds(1_000_000, may_have_nulls=True), spec, PlanSettings())
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
    bounds = Bounds(rows_estimated=sum(pages) * 100, pages=parts)
    planned = plan_pages(bounds, "snap", PlanSettings(slots=slots))
    for part in parts:
        ranges = [
            piece.extent
            for piece in planned
            if isinstance(piece.extent, CtidRange) and piece.extent.relation == part.relation
        ]
        assert ranges[0].first_page == 0
        assert ranges[-1].end_page is None
        assert [one.end_page for one in ranges[:-1]] == [one.first_page for one in ranges[1:]]


def test_dates_become_slices_in_the_order_they_run() -> None:
    dates = (date(2024, 1, 2), date(2024, 1, 1))
    planned = plan_dates(make_spec(kind=Kind.TRANSFER, dates=dates))
    assert [part.extent for part in planned] == [Dated(date=day) for day in dates]


def test_a_backfill_that_is_held_back_has_shorter_slices() -> None:
    settings = PlanSettings(slots=1).paced(1000)
    planned = plan_keys(make_bounds(1_000_000), make_spec(), settings)
    assert len(planned) == 200
    assert PlanSettings().paced(None) == PlanSettings()
