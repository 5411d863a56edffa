"""A sink's filter: which conditions make sense over which columns, and their values read exactly.

Pure: the service checks a filter with this at creation, the task reads the values with it.
"""

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any
from uuid import UUID

from refill.domain.errors import Invalid
from refill.domain.pipeline import Condition, Operator
from refill.domain.table import Column

FIELD = "filter"

Value = bool | int | float | Decimal | str | date | datetime

_ORDERING = frozenset({Operator.GT, Operator.GE, Operator.LT, Operator.LE})
_NULL_TESTS_ONLY = "can only be tested with `is null` and `is not null`"
_LISTS = frozenset({Operator.IN, Operator.NOT_IN})
NULL_TESTS = frozenset({Operator.IS_NULL, Operator.IS_NOT_NULL})


class Family(StrEnum):
    """How values of a type compare; in words, what they are compared with. No two say the same:
    equal values would make one family of them."""

    INTEGER = "a whole number"
    NUMERIC = "a number"
    FLOAT = "a floating point number"
    BOOLEAN = "true or false"
    TEXT = "text"
    PADDED = "text, in which blanks at the end mean nothing"
    CASELESS = "text in any case"
    UUID = "a uuid"
    DATE = "a date, YYYY-MM-DD"
    TIMESTAMP = "a date and time, YYYY-MM-DDTHH:MM:SS"
    INSTANT = "a date and time with its offset, YYYY-MM-DDTHH:MM:SSZ"
    OPAQUE = "text, as PostgreSQL prints it"
    INCOMPARABLE = "nothing"  # json and the like: only null or not


# not ordered here: a collation orders texts, and only the database has it
_EQUALITY_ONLY = frozenset({Family.TEXT, Family.PADDED, Family.OPAQUE, Family.BOOLEAN})

_FAMILIES = {
    "smallint": Family.INTEGER,
    "integer": Family.INTEGER,
    "bigint": Family.INTEGER,
    "oid": Family.INTEGER,
    "numeric": Family.NUMERIC,
    "real": Family.FLOAT,
    "double precision": Family.FLOAT,
    "boolean": Family.BOOLEAN,
    "text": Family.TEXT,
    "character varying": Family.TEXT,
    "name": Family.TEXT,
    "character": Family.PADDED,
    "bpchar": Family.PADDED,
    "uuid": Family.UUID,
    "date": Family.DATE,
    "timestamp without time zone": Family.TIMESTAMP,
    "timestamp with time zone": Family.INSTANT,
    "json": Family.INCOMPARABLE,
    "jsonb": Family.INCOMPARABLE,
    "xml": Family.INCOMPARABLE,
    "hstore": Family.INCOMPARABLE,
}


def family_of(type_name: str) -> Family:
    """By the type's name as format_type prints it: `numeric(12,2)`, `timestamp(3) with time zone`.

    What is not known compares as text and only for equality; arrays and documents not at all.
    """
    if type_name.endswith("[]"):
        return Family.INCOMPARABLE
    bare = re.sub(r"\([^)]*\)", "", type_name).strip()
    if bare.rpartition(".")[2] == "citext":  # an extension's, in whatever schema
        return Family.CASELESS
    return _FAMILIES.get(re.sub(r"\s+", " ", bare), Family.OPAQUE)


def check_filter(conditions: Sequence[Condition], columns: Sequence[Column]) -> None:
    """Invalid on `filter` when a condition names no column, or compares what cannot be compared."""
    by_name = {column.name: column for column in columns}
    problems: list[str] = []
    for condition in conditions:
        column = by_name.get(condition.column_name)
        if column is None:
            names = ", ".join(sorted(by_name)[:20])
            problems.append(f"there is no column {condition.column_name!r}; there are: {names}")
            continue
        try:
            read_values(condition, family_of(column.type))
        except ValueError as exc:
            problems.append(f"{condition.column_name} {condition.operator}: {exc}")
    if problems:
        raise Invalid(f"{FIELD}: {problems[0]}", {FIELD: problems})


def read_values(condition: Condition, family: Family) -> tuple[Value, ...]:
    """The values that a condition compares with, exact; ValueError says what is wrong with them.

    A null test has none, a comparison one, `in` and `not in` any number.
    """
    operator, given = condition.operator, condition.comparison_value
    if operator in NULL_TESTS:
        if given is not None:
            raise ValueError("takes no comparison_value")
        return ()
    if family is Family.INCOMPARABLE:
        raise ValueError(f"this type {_NULL_TESTS_ONLY}")
    if family is Family.CASELESS:
        # lower() of the database's locale: ASCII only in C, a dotless i in Turkish, more by ICU
        raise ValueError(
            f"citext compares by the database's own locale, and {_NULL_TESTS_ONLY}; "
            "a transform can compare lower(…) of it"
        )
    if operator in _ORDERING and family in _EQUALITY_ONLY:
        raise ValueError("this type can be compared for equality only")
    if operator in _LISTS:
        if not isinstance(given, list | tuple):
            raise ValueError("comparison_value must be a list")
        return tuple(_read_value(value, family) for value in given)
    return (_read_value(given, family),)


def _read_value(given: Any, family: Family) -> Value:
    if given is None:
        raise ValueError("comparison_value must not be null; use `is null` or `is not null`")
    try:
        return _READERS[family](given)
    except (ValueError, TypeError, InvalidOperation, OverflowError):
        raise ValueError(f"comparison_value must be {family.value}, not {given!r}") from None


def _whole(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise ValueError
    number = int(given)
    if not -(2**63) <= number < 2**63:
        raise ValueError
    return number


def _number(given: Any) -> Decimal:
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        raise ValueError
    # a JSON number has its shortest text as its meaning: 0.1 is a tenth, not the nearest double
    return Decimal(str(given).strip())


def _floating(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        raise ValueError
    number = float(given)
    if math.isinf(number) and not str(given).strip().lstrip("+-").lower().startswith("inf"):
        raise ValueError
    return number


def _boolean(given: Any) -> bool:
    if isinstance(given, bool):
        return given
    if given in ("true", "false"):
        return bool(given == "true")
    raise ValueError


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise ValueError
    return given


def _uuid(given: Any) -> str:
    return str(UUID(_text(given)))


def _day(given: Any) -> date | str:
    text = _text(given)
    return text if text in ("infinity", "-infinity") else date.fromisoformat(text)


def _moment(given: Any) -> datetime | str:
    text = _text(given)
    if text in ("infinity", "-infinity"):
        return text
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError
    return moment


def _instant(given: Any) -> datetime | str:
    """Without an offset it is UTC, as everything in refill is."""
    text = _text(given)
    if text in ("infinity", "-infinity"):
        return text
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


_READERS: dict[Family, Callable[[Any], Value]] = {
    Family.INTEGER: _whole,
    Family.NUMERIC: _number,
    Family.FLOAT: _floating,
    Family.BOOLEAN: _boolean,
    Family.TEXT: _text,
    Family.PADDED: _text,
    Family.UUID: _uuid,
    Family.DATE: _day,
    Family.TIMESTAMP: _moment,
    Family.INSTANT: _instant,
    Family.OPAQUE: _text,
}
