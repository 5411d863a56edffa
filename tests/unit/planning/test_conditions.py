"""Which conditions make sense over which columns."""

from typing import Any

import pytest

from refill.domain.errors import Invalid
from refill.domain.pipeline import Condition, Operator
from refill.planning.conditions import check_filter
from tests.specs import pg_column

COLUMNS = [
    pg_column(name="n", type="integer", oid=23),
    pg_column(name="price", type="numeric(12,2)", oid=1700),
    pg_column(name="at", type="timestamp(3) with time zone", oid=1184),
    pg_column(name="day", type="date", oid=1082),
    pg_column(name="id", type="uuid", oid=2950),
    pg_column(name="ok", type="boolean", oid=16),
    pg_column(name="doc", type="jsonb", oid=3802),
    pg_column(name="tags", type="text[]", oid=1009, element_oid=25),
    pg_column(name="ip", type="inet", oid=869),
    pg_column(name="code", type="character(3)", oid=1042),
    pg_column(name="note", type="character varying(9)", oid=1043),
    pg_column(name="raw", type="bytea", oid=17),
    pg_column(name="few", type="small", oid=99_999, kind="d", base_oid=21),
    pg_column(name="email", type="extensions.citext", oid=16401, extension="citext"),
]


def check(column: str, operator: str, value: Any = None) -> None:
    condition = Condition(column_name=column, operator=Operator(operator), comparison_value=value)
    check_filter([condition], COLUMNS)


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
        ("raw", "=", "\\x00ff"),
        ("few", ">", 5),
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
        ("email", "=", "a@b.c", "by rules that only its database has"),
        ("price", "<", [], "must be a number"),
        ("raw", "=", "ff", "must be bytes"),
    ],
)
def test_what_makes_no_sense_is_told(column: str, operator: str, value: Any, words: str) -> None:
    with pytest.raises(Invalid, match=words) as raised:
        check(column, operator, value)

    assert list(raised.value.fields) == ["filter"]
