"""Which conditions make sense over which columns."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from refill.domain.errors import Invalid
from refill.domain.pipeline import Condition, Operator
from refill.domain.table import Family
from refill.planning.conditions import check_filter, read_values
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


# of each family that takes no number
VALUES: dict[Family, Any] = {
    Family.BOOLEAN: True,
    Family.TEXT: "a",
    Family.BYTES: "\\x00",
    Family.DATE: "2024-01-01",
    Family.TIME: "10:00",
    Family.TIMESTAMP: "2024-01-01T00:00:00",
    Family.INSTANT: "2024-01-01T00:00:00Z",
    Family.UUID: "0f8fad5b-d9cb-469f-a165-70867728950e",
    Family.OTHER: "10.0.0.1",
}


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


def read(family: Family, value: Any, operator: Operator = Operator.EQ) -> tuple[Any, ...]:
    return read_values(
        Condition(column_name="c", operator=operator, comparison_value=value), family
    )


@pytest.mark.parametrize(
    ("family", "given", "meant"),
    [
        (Family.BOOLEAN, True, True),
        (Family.BOOLEAN, "true", True),
        (Family.BOOLEAN, "false", False),
        (Family.INTEGER, "-7", -7),
        (Family.INTEGER, 2**63 - 1, 2**63 - 1),
        (Family.INTEGER, -(2**63), -(2**63)),
        (Family.DECIMAL, 0.1, Decimal("0.1")),
        (Family.DECIMAL, 7, Decimal(7)),
        (Family.DECIMAL, " 1.50 ", Decimal("1.50")),
        (Family.FLOAT, "1e3", 1000.0),
        (Family.FLOAT, 7, 7.0),
        (Family.FLOAT, " Infinity", math.inf),
        (Family.FLOAT, "-inf", -math.inf),
        (Family.TEXT, "a ", "a "),
        (Family.BYTES, "\\x00fF", b"\x00\xff"),
        (Family.DATE, "2024-02-29", date(2024, 2, 29)),
        (Family.TIME, "10:00", "10:00"),
        (Family.TIMESTAMP, "2024-01-01T10:00:00", datetime(2024, 1, 1, 10)),
        (Family.INSTANT, "2024-01-01", datetime(2024, 1, 1, tzinfo=UTC)),
        (Family.INSTANT, "2024-01-01T01:00:00+02:00", datetime(2023, 12, 31, 23, tzinfo=UTC)),
        (
            Family.UUID,
            "0F8FAD5B-D9CB-469F-A165-70867728950E",
            "0f8fad5b-d9cb-469f-a165-70867728950e",
        ),
        (Family.OTHER, "10.0.0.1", "10.0.0.1"),
        *(
            (family, endless, endless)
            for family in (Family.DATE, Family.TIMESTAMP, Family.INSTANT)
            for endless in ("infinity", "-infinity")
        ),
    ],
)
def test_a_value_is_read_exactly(family: Family, given: Any, meant: Any) -> None:
    (value,) = read(family, given)
    assert (value, type(value)) == (meant, type(meant))
    assert getattr(value, "tzinfo", None) == getattr(meant, "tzinfo", None)


@pytest.mark.parametrize(
    ("family", "given", "words"),
    [
        *((Family.BOOLEAN, given, "true or false") for given in ("yes", 1, None)),
        *((Family.INTEGER, given, "a whole number") for given in (2**63, -(2**63) - 1, 1.5, True)),
        *((Family.DECIMAL, given, "a number") for given in ("five", True, [1])),
        # what overflows is not the infinity that it becomes
        *((Family.FLOAT, given, "a floating") for given in ("five", True, [1], "1e999", 10**999)),
        (Family.TEXT, 5, "text"),
        *((Family.BYTES, given, "bytes in") for given in ("00ff", "\\x0", b"x")),
        *((Family.DATE, given, "a date,") for given in ("2024-02-30", 20240101, "Infinity")),
        (Family.TIME, 10, "text, as the source prints it"),
        *(
            (Family.TIMESTAMP, given, "a date and time, YYYY")
            for given in ("2024-01-01T00:00:00Z", "yesterday", 0)
        ),
        *((Family.INSTANT, given, "a date and time with") for given in ("yesterday", 0)),
        *((Family.UUID, given, "a uuid") for given in ("not one", 5)),
        (Family.OTHER, 5, "text, as the source prints it"),
    ],
)
def test_what_is_no_value_of_the_family_is_refused(family: Family, given: Any, words: str) -> None:
    with pytest.raises(ValueError, match="must not be null" if given is None else f"be {words}"):
        read(family, given)


@pytest.mark.parametrize("family", sorted(set(Family) - {Family.JSON}))
def test_only_what_has_the_same_order_everywhere_is_compared_by_it(family: Family) -> None:
    unordered = {Family.TEXT, Family.BYTES, Family.TIME, Family.OTHER, Family.BOOLEAN}
    value = VALUES.get(family, 5)
    assert len(read(family, value)) == 1
    for operator in (Operator.GT, Operator.GE, Operator.LT, Operator.LE):
        if family in unordered:
            with pytest.raises(ValueError, match="for equality only"):
                read(family, value, operator)
        else:
            assert len(read(family, value, operator)) == 1


@pytest.mark.parametrize("operator", [Operator.IN, Operator.NOT_IN])
def test_a_list_has_any_number_of_values(operator: Operator) -> None:
    assert read(Family.INTEGER, [1, "2"], operator) == (1, 2)
    assert read(Family.INTEGER, (), operator) == ()
    with pytest.raises(ValueError, match="must be a list"):
        read(Family.TEXT, "ab", operator)


def test_all_that_is_wrong_with_a_filter_is_told_at_once() -> None:
    wrong = [
        Condition(column_name="gone", operator=Operator.IS_NULL, comparison_value=None),
        Condition(column_name="n", operator=Operator.EQ, comparison_value="five"),
        Condition(column_name="n", operator=Operator.EQ, comparison_value=5),
    ]
    with pytest.raises(Invalid) as raised:
        check_filter(wrong, COLUMNS)
    assert [problem.split(":")[0] for problem in raised.value.fields["filter"]] == [
        "there is no column 'gone'; there are",
        "n =",
    ]
