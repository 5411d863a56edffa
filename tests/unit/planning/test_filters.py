"""Which conditions make sense over which columns."""

from typing import Any

import pytest

from refill.domain.errors import Invalid
from refill.domain.pipeline import Condition, Operator
from refill.domain.table import Column
from refill.planning.filters import Family, check_filter

COLUMNS = [
    Column(name="n", type="integer", oid=23),
    Column(name="price", type="numeric(12,2)", oid=1700),
    Column(name="at", type="timestamp(3) with time zone", oid=1184),
    Column(name="day", type="date", oid=1082),
    Column(name="id", type="uuid", oid=2950),
    Column(name="ok", type="boolean", oid=16),
    Column(name="doc", type="jsonb", oid=3802),
    Column(name="tags", type="text[]", oid=1009),
    Column(name="ip", type="inet", oid=869),
    Column(name="code", type="character(3)", oid=1042),
    Column(name="note", type="character varying(9)", oid=1043),
    Column(name="email", type="extensions.citext", oid=16401, extension="citext"),
]


def check(column: str, operator: str, value: Any = None) -> None:
    condition = Condition(column_name=column, operator=Operator(operator), comparison_value=value)
    check_filter([condition], COLUMNS)


def test_every_family_is_one_of_its_own() -> None:
    assert len(list(Family)) == len(Family.__members__)


@pytest.mark.parametrize(
    ("column", "operator", "value"),
    [
        ("n", "=", 5),
        ("n", "in", [1, "2"]),
        ("price", ">", 0.1),
        ("price", "=", "NaN"),
        ("at", ">=", "2024-01-01T00:00:00Z"),
        ("at", "<", "2024-01-01"),
        ("day", "=", "infinity"),
        ("id", "!=", "0F8FAD5B-D9CB-469F-A165-70867728950E"),
        ("ok", "=", True),
        ("doc", "is not null", None),
        ("ip", "=", "10.0.0.1"),
        ("code", "not in", ["ab", "c  "]),
        ("email", "is not null", None),
    ],
)
def test_what_can_be_compared_passes(column: str, operator: str, value: Any) -> None:
    check(column, operator, value)


@pytest.mark.parametrize(
    ("column", "operator", "value", "words"),
    [
        ("gone", "=", 1, "no column 'gone'"),
        ("n", "=", "five", "must be a whole number"),
        ("n", "=", True, "must be a whole number"),
        ("n", "=", 2**70, "must be a whole number"),
        ("n", "=", None, "must not be null"),
        ("n", "in", 5, "must be a list"),
        ("n", "in", [1, None], "must not be null"),
        ("n", "is null", 5, "takes no comparison_value"),
        ("at", "=", "yesterday", "date and time"),
        ("day", "=", "2024-02-30", "must be a date"),
        ("id", "=", "not one", "must be a uuid"),
        ("ok", ">", True, "equality only"),
        ("doc", "=", "{}", "is null"),
        ("tags", "=", "a", "is null"),
        ("ip", "<", "10.0.0.1", "equality only"),
        ("note", "<", "a", "equality only"),
        ("code", ">=", "a", "equality only"),
        ("code", "=", 5, "must be text"),
        ("email", "=", "a@b.c", "citext compares by the database's own locale"),
        ("price", "<", [], "must be a number"),
    ],
)
def test_what_makes_no_sense_is_told(column: str, operator: str, value: Any, words: str) -> None:
    with pytest.raises(Invalid, match=words) as raised:
        check(column, operator, value)

    assert list(raised.value.fields) == ["filter"]
