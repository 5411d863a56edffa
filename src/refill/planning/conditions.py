"""A sink's filter: what conditions mean on each family, and their values read exactly.

Pure: the service checks a filter with this at creation, the task reads the values with it.
"""

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from refill.domain.errors import Invalid
from refill.domain.pipeline import Condition, Operator
from refill.domain.table import Column, Comparison, Family

FIELD = "filter"

Value = bool | int | float | Decimal | str | bytes | date | datetime

_ORDERING = frozenset({Operator.GT, Operator.GE, Operator.LT, Operator.LE})
_NULL_TESTS_ONLY = "can only be tested with `is null` and `is not null`"
_LISTS = frozenset({Operator.IN, Operator.NOT_IN})
NULL_TESTS = frozenset({Operator.IS_NULL, Operator.IS_NOT_NULL})
# what is syntax in a JSON path is no part of a name
_PATH = re.compile(r"""[^.'"\\\[\]]+(\.[^.'"\\\[\]]+)*""")


# what a value of each family is compared with, in words
_WORDS = {
    Family.BOOLEAN: "true or false",
    Family.INTEGER: "a whole number",
    Family.DECIMAL: "a number",
    Family.FLOAT: "a floating point number",
    Family.TEXT: "text",
    Family.BYTES: "bytes in hexadecimal, as in \\x00ff",
    Family.DATE: "a date, YYYY-MM-DD",
    Family.TIME: "text, as the source prints it",
    Family.TIMESTAMP: "a date and time, YYYY-MM-DDTHH:MM:SS",
    Family.INSTANT: "a date and time with its offset, YYYY-MM-DDTHH:MM:SSZ",
    Family.UUID: "a uuid",
    Family.OTHER: "text, as the source prints it",
}
# not ordered here: a collation orders texts, and only the source has it
_EQUALITY_ONLY = frozenset({Family.TEXT, Family.BYTES, Family.TIME, Family.OTHER, Family.BOOLEAN})


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
            if condition.field_path is not None:
                read_inner_values(condition, column.family)
            else:
                read_values(condition, column.family, column.comparison)
        except ValueError as exc:
            problems.append(f"{condition.column_name} {condition.operator}: {exc}")
    if problems:
        raise Invalid(f"{FIELD}: {problems[0]}", {FIELD: problems})


def read_values(
    condition: Condition, family: Family, comparison: Comparison = Comparison.FAMILY
) -> tuple[Value, ...]:
    """The values that a condition compares with, exact; ValueError says what is wrong with them.

    A null test has none, a comparison one, `in` and `not in` any number.
    """
    operator, given = condition.operator, condition.comparison_value
    if operator in NULL_TESTS:
        if given is not None:
            raise ValueError("takes no comparison_value")
        return ()
    if comparison is Comparison.NONE or family is Family.JSON:
        raise ValueError(f"this type {_NULL_TESTS_ONLY}")
    if comparison is Comparison.SOURCE_ONLY:
        # lower() of a database's locale, say: ASCII only in C, a dotless i in Turkish
        raise ValueError(
            f"this type compares by rules that only its database has, and {_NULL_TESTS_ONLY}; "
            "a transform can compare lower(…) of it"
        )
    if operator in _ORDERING and family in _EQUALITY_ONLY:
        raise ValueError("this type can be compared for equality only")
    if operator in _LISTS:
        if not isinstance(given, list | tuple):
            raise ValueError("comparison_value must be a list")
        return tuple(_read_value(value, family) for value in given)
    return (_read_value(given, family),)


def read_inner_values(condition: Condition, family: Family) -> tuple[Value, ...]:
    """Of a condition on what is inside a JSON column: texts, numbers, true and false."""
    operator, given = condition.operator, condition.comparison_value
    if family is not Family.JSON:
        raise ValueError("field_path looks inside json and jsonb columns only")
    if not _PATH.fullmatch(condition.field_path or ""):
        raise ValueError("field_path is names, and numbers of elements, between dots")
    if operator in NULL_TESTS:
        if given is not None:
            raise ValueError("takes no comparison_value")
        return ()
    if operator in _LISTS and not isinstance(given, list | tuple):
        raise ValueError("comparison_value must be a list")
    return tuple(_inner(value, operator) for value in (given if operator in _LISTS else (given,)))


def _inner(given: Any, operator: Operator) -> Value:
    if isinstance(given, bool | str):
        if operator in _ORDERING:
            raise ValueError("only numbers are ordered inside JSON")
        return given
    if isinstance(given, int | float):
        return _number(given)
    raise ValueError(f"comparison_value must be text, a number, true or false, not {given!r}")


def _read_value(given: Any, family: Family) -> Value:
    if given is None:
        raise ValueError("comparison_value must not be null; use `is null` or `is not null`")
    try:
        return _READERS[family](given)
    except (ValueError, TypeError, InvalidOperation, OverflowError):
        raise ValueError(f"comparison_value must be {_WORDS[family]}, not {given!r}") from None


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


def _bytes(given: Any) -> bytes:
    text = _text(given)
    if not text.startswith("\\x"):
        raise ValueError
    return bytes.fromhex(text[2:])


_READERS: dict[Family, Callable[[Any], Value]] = {
    Family.BOOLEAN: _boolean,
    Family.INTEGER: _whole,
    Family.DECIMAL: _number,
    Family.FLOAT: _floating,
    Family.TEXT: _text,
    Family.BYTES: _bytes,
    Family.DATE: _day,
    Family.TIME: _text,
    Family.TIMESTAMP: _moment,
    Family.INSTANT: _instant,
    Family.UUID: _uuid,
    Family.OTHER: _text,
}
