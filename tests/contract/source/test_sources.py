"""What every source promises, on the real system. A bed in `beds/` is all that a new one adds."""

from contextlib import suppress
from datetime import date, timedelta
from threading import Thread

import pytest

from refill.connectors.kit.contract import Source
from refill.connectors.kit.fields import note_of
from refill.domain.errors import (
    Invalid,
    RefillError,
    SourceChanged,
    SourceRefused,
    SourceUnavailable,
)
from refill.domain.slice import Dated, NativeExtent, Whole
from refill.domain.spec import DatedRead, KeyedRead, QueryRead
from refill.domain.table import DATED, Keyless
from tests.contract.beds import for_beds
from tests.contract.source.bed import (
    FIRST,
    ROWS,
    SourceBed,
    can_be_unreachable,
    can_refuse,
    has_keyless,
    ids,
    is_dated,
    is_keyed,
    planned,
    rows_of,
    takes_no_queries,
    takes_queries,
)


def test_it_can_be_tested_and_lists_its_tables(bed: SourceBed, source: Source) -> None:
    source.test()
    found = {(table.schema_name, table.name): table for table in source.catalogue()}
    assert found[bed.schema_name, "rows"] == source.find_table(bed.schema_name, "rows")
    assert source.find_table(bed.schema_name, "nothing of that name") is None
    assert source.find_table("no such schema", "rows") is None


def test_a_table_is_as_the_bed_says(bed: SourceBed, read: KeyedRead) -> None:
    """The bed's own words decide which of these tests it gets."""
    day = read.table.column("day")
    assert day is not None
    assert [column.name for column in read.table.columns] == ["id", "day", "extra"]
    assert read.table.key == (("id",) if bed.keyed else ())
    assert (day.family in DATED) == bed.dated


@for_beds(has_keyless)
def test_a_table_without_a_key_says_so(bed: SourceBed, source: Source) -> None:
    table = source.find_table(bed.schema_name, str(bed.keyless_name))
    assert table is not None
    assert table.key == ()


def test_every_value_is_what_was_put_in(bed: SourceBed, source: Source, read: KeyedRead) -> None:
    found = [row for batch in source.read(read, Whole()) for row in batch.to_pylist()]
    days = {FIRST + timedelta(days=number): number for number in range(ROWS // 100)}
    for row in found:
        # where it is no date, it is as the source prints it
        day = row["day"] if bed.dated else date.fromisoformat(row["day"])
        assert days[day] == row["id"] // 100
    assert sorted((row["id"], row["extra"]) for row in found) == [(n, e) for n, _, e in rows_of()]


def test_the_schema_is_that_of_every_batch_and_says_what_a_column_is(
    source: Source, read: KeyedRead
) -> None:
    schema = source.schema(read)
    for batch in source.read(read, Whole()):
        assert batch.schema.equals(schema, check_metadata=True)
    for field, column in zip(schema, read.fields, strict=True):
        note = note_of(field)
        assert field.name == column.name
        assert (note.family, note.comparison) == (column.family, column.comparison)
        assert note.native_type == column.type
        assert note.system


@for_beds(can_be_unreachable)
def test_the_schema_needs_no_connection(bed: SourceBed, source: Source, read: KeyedRead) -> None:
    away = bed.open(bed.unreachable())
    assert away.schema(read).equals(source.schema(read), check_metadata=True)


def test_the_planned_slices_are_the_whole_table_once(
    bed: SourceBed, source: Source, read: KeyedRead
) -> None:
    extents = planned(source, read)
    assert len(extents) > 2 or not bed.keyed
    task = bed.open()
    found = [number for extent in extents for number in ids(task.read(read, extent))]
    task.close()
    assert sorted(found) == list(range(ROWS))


@for_beds(is_keyed)
def test_a_start_and_an_end_are_part_of_what_is_read(bed: SourceBed, source: Source) -> None:
    read = bed.read(source, start_position="250", end_position="750")
    extents = planned(source, read)
    found = [number for extent in extents for number in ids(source.read(read, extent))]
    assert sorted(found) == list(range(250, 751))


@for_beds(is_keyed)
def test_bounds_are_a_size_and_no_more_keys_than_wanted(source: Source, read: KeyedRead) -> None:
    bounds = source.bounds(read, 10)
    assert ROWS / 10 <= bounds.rows_estimated <= ROWS * 10
    assert 1 <= len(bounds.boundaries) <= 10
    assert len(set(bounds.boundaries)) == len(bounds.boundaries)


@for_beds(has_keyless)
def test_without_a_key_the_slices_are_the_whole_table_once_too(
    bed: SourceBed, source: Source
) -> None:
    read = bed.read(source, str(bed.keyless_name))
    assert read.table.keyless is not Keyless.REFUSED
    extents = planned(source, read)
    task = bed.open()
    for extent in extents:
        once, again = (ids(task.read(read, extent)) for _ in range(2))
        if isinstance(extent, NativeExtent) and extent.same_order:
            assert once == again
        assert sorted(once) == sorted(again)
    found = [number for extent in extents for number in ids(task.read(read, extent))]
    task.close()
    assert sorted(found) == list(range(ROWS))


def test_only_the_columns_asked_for_come_in_their_order(source: Source, read: KeyedRead) -> None:
    some = read.model_copy(update={"columns": ("extra", "id")})
    assert source.schema(some).names == ["extra", "id"]
    assert {tuple(batch.schema.names) for batch in source.read(some, Whole())} == {("extra", "id")}


@for_beds(is_dated)
def test_dates_together_are_what_they_are_alone(source: Source, read: KeyedRead) -> None:
    dated = DatedRead(table=read.table, date_column="day")
    dates = [FIRST + timedelta(days=number) for number in range(-1, 12)]
    for wanted in (dates, dates[::-1], dates[::3]):
        together = {day: sorted(ids(batches)) for day, batches in source.read_dates(dated, wanted)}
        assert list(together) == wanted
        alone = {day: sorted(ids(source.read(dated, Dated(date=day)))) for day in wanted}
        assert together == alone
    assert sorted(ids(source.read(dated, Dated(date=FIRST)))) == list(range(100))


@for_beds(is_dated)
def test_a_date_is_read_though_its_column_is_not_asked_for(source: Source, read: KeyedRead) -> None:
    dated = DatedRead(table=read.table, date_column="day", columns=("id",))
    source.check(dated)
    assert sorted(ids(source.read(dated, Dated(date=FIRST)))) == list(range(100))


@for_beds(takes_queries)
def test_a_query_is_described_and_read_by_its_date(bed: SourceBed, source: Source) -> None:
    read = QueryRead(query=bed.query, fields=source.describe_query(bed.query))
    assert [column.name for column in read.fields] == ["id", "extra"]
    source.check(read)
    batches = list(source.read(read, Dated(date=FIRST)))
    assert all(batch.schema.equals(source.schema(read), check_metadata=True) for batch in batches)
    assert sorted(ids(iter(batches))) == list(range(100))


@for_beds(takes_queries)
def test_a_query_that_makes_no_sense_is_the_users_to_mend(bed: SourceBed, source: Source) -> None:
    with pytest.raises(Invalid) as caught:
        source.describe_query(bed.query.replace("extra", "nothing_of_that_name"))
    assert set(caught.value.fields) == {"query"}


@for_beds(takes_no_queries)
def test_where_there_are_no_queries_that_is_said(source: Source) -> None:
    with pytest.raises(Invalid):
        source.describe_query("SELECT 1")


def test_reading_may_stop_and_begin_again(source: Source, read: KeyedRead) -> None:
    batches = source.read(read, Whole())
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert len(ids(source.read(read, Whole()))) == ROWS
    source.close()
    source.close()
    assert len(ids(source.read(read, Whole()))) == ROWS


def test_closed_by_another_thread_it_stops_with_an_error_of_ours(
    source: Source, read: KeyedRead
) -> None:
    batches = source.read(read, Whole())
    next(batches)
    closer = Thread(target=source.close)
    closer.start()
    closer.join()
    with suppress(RefillError):
        list(batches)
    assert len(ids(source.read(read, Whole()))) == ROWS


@for_beds(can_be_unreachable)
def test_a_source_that_is_away_is_worth_trying_again(bed: SourceBed, read: KeyedRead) -> None:
    away = bed.open(bed.unreachable())
    for use in (
        away.test,
        away.catalogue,
        lambda: away.check(read),
        lambda: away.bounds(read, 10),
        lambda: list(away.read(read, Whole())),
    ):
        with pytest.raises(SourceUnavailable) as caught:
            use()
        assert "\n" not in caught.value.message
    away.close()


@for_beds(can_refuse)
def test_a_refusal_is_not_tried_again(bed: SourceBed, read: KeyedRead) -> None:
    refused = bed.open(bed.refused())
    for use in (refused.test, lambda: list(refused.read(read, Whole()))):
        with pytest.raises(SourceRefused) as caught:
            use()
        assert "\n" not in caught.value.message
    refused.close()


def test_a_column_that_is_gone_is_said_and_not_read_over(
    bed: SourceBed, source: Source, read: KeyedRead
) -> None:
    source.check(read)
    bed.drop_column()
    with pytest.raises(SourceChanged, match="extra"):
        source.check(read)
    with pytest.raises(SourceChanged, match="extra"):
        list(source.read(read, Whole()))
    fewer = read.model_copy(update={"columns": ("id", "day")})
    source.check(fewer)
    assert len(ids(source.read(fewer, Whole()))) == ROWS


def test_a_table_that_is_gone_is_said(bed: SourceBed, source: Source, read: KeyedRead) -> None:
    bed.drop_table()
    with pytest.raises(SourceChanged, match="rows"):
        source.check(read)
    with pytest.raises(SourceChanged, match="rows"):
        list(source.read(read, Whole()))
