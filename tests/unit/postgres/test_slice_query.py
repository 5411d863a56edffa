"""The SQL of a slice."""

from datetime import date
from typing import Any

import pytest

from refill.connectors.postgres.native import Pages
from refill.connectors.postgres.read import dates_query, slice_query
from refill.connectors.postgres.source import contiguous
from refill.domain.errors import Misconfigured
from refill.domain.slice import Dated, KeyRange, NullKeys, Whole
from refill.domain.spec import DatedRead, KeyedRead
from refill.domain.table import Table
from tests.specs import pg_column

A = pg_column(name="a", type="bigint", oid=20, not_null=True)
B = pg_column(name='b"x y', type="text", oid=25)
DAY = pg_column(name="at", type="timestamp with time zone", oid=1184)


ORDER = Table(schema_name="public", name="Order", columns=(A, B, DAY), primary_key=("a",))


def keyed(*sort_columns: str) -> KeyedRead:
    return KeyedRead(table=ORDER, columns=("a",), sort_columns=sort_columns or ("a",))


def dated(column: str = "at", timezone: str = "UTC") -> DatedRead:
    return DatedRead(table=ORDER, columns=("a",), date_column=column, timezone=timezone)


BASE = 'SELECT "a" AS "a" FROM "public"."Order"'


@pytest.mark.parametrize(
    ("extent", "where"),
    [
        (KeyRange(), ""),
        (KeyRange(lower=("1",)), """ WHERE ("a" > '1')"""),
        (KeyRange(upper=("9",)), """ WHERE ("a" <= '9')"""),
        (
            KeyRange(lower=("1",), upper=("9",), lower_inclusive=True),
            """ WHERE ("a" >= '1') AND ("a" <= '9')""",
        ),
        (KeyRange(lower=("1'; DROP",)), """ WHERE ("a" > '1''; DROP')"""),
        (NullKeys(), ' WHERE ("a" IS NULL)'),
        (Whole(), ""),
    ],
)
def test_a_key_range_is_half_open(extent: Any, where: str) -> None:
    assert slice_query(keyed(), extent) == BASE + where


def test_a_composite_key_is_compared_as_a_row_and_its_nullable_parts_are_not_null() -> None:
    read = keyed("a", 'b"x y')
    assert slice_query(read, KeyRange(lower=("1", "x"), upper=("2", "y"))) == (
        BASE
        + """ WHERE (("a", "b""x y") > ('1', 'x')) AND (("a", "b""x y") <= ('2', 'y'))"""
        + """ AND ("b""x y" IS NOT NULL)"""
    )
    assert slice_query(read, NullKeys()) == BASE + ' WHERE ("a" IS NULL OR "b""x y" IS NULL)'


def test_a_start_may_name_the_first_part_of_a_composite_key_only() -> None:
    read = keyed("a", 'b"x y')
    assert """ WHERE ("a" >= '1') AND """ in slice_query(
        read, KeyRange(lower=("1",), lower_inclusive=True)
    )


def test_pages_are_of_one_relation_alone() -> None:
    pages = Pages(relation='public."p 1"', first_page=3, end_page=7, snapshot="s")
    assert slice_query(keyed(), pages.extent()) == (
        'SELECT "a" AS "a" FROM ONLY public."p 1" '
        "WHERE (ctid >= '(3,0)'::tid) AND (ctid < '(7,0)'::tid)"
    )


def test_a_date_is_a_range_of_the_raw_column() -> None:
    assert slice_query(dated(timezone="Europe/O'Slo"), Dated(date=date(2024, 1, 31))) == (
        BASE
        + """ WHERE ("at" >= (DATE '2024-01-31'::timestamp AT TIME ZONE 'Europe/O''Slo'))"""
        + """ AND ("at" < ((DATE '2024-01-31' + 1)::timestamp AT TIME ZONE 'Europe/O''Slo'))"""
    )


def test_dates_come_newest_first_when_asked() -> None:
    query = dates_query(dated(), date(9999, 12, 30), date(9999, 12, 31), newest_first=True)
    assert query.endswith('ORDER BY "at" DESC')
    assert "(DATE '9999-12-31' + 1)" in query


def test_a_date_column_must_be_a_date() -> None:
    with pytest.raises(Misconfigured, match="must be a date or a timestamp"):
        slice_query(dated("a"), Dated(date=date(2024, 1, 1)))


def test_runs_of_dates_go_up_or_down_and_keep_the_order() -> None:
    def days(*numbers: int) -> list[date]:
        return [date(2024, 1, number) for number in numbers]

    assert contiguous(days()) == []
    assert contiguous(days(3, 2, 1)) == [days(3, 2, 1)]
    assert contiguous(days(1, 2, 3, 2)) == [days(1, 2, 3), days(2)]
    assert contiguous(days(5, 1, 2, 9)) == [days(5), days(1, 2), days(9)]
    assert contiguous(days(1, 1)) == [days(1), days(1)]


def test_a_table_by_key_is_not_read_by_date() -> None:
    with pytest.raises(Misconfigured, match=r"does not read public\.Order by date"):
        slice_query(keyed(), Dated(date=date(2024, 1, 1)))
