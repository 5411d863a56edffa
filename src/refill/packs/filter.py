"""A sink's filter over Arrow batches, vectorised; NULL is as in SQL, NaN above every number."""

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow
import pyarrow.compute

from refill.connectors.kit.fields import FieldNote, note_of
from refill.connectors.kit.instants import is_far
from refill.domain.errors import Invalid, SourceChanged
from refill.domain.pipeline import Condition, Operator
from refill.domain.table import Comparison, Family
from refill.planning.conditions import NULL_TESTS, Value, read_inner_values, read_values

# the stubs know none of the overloads used here
pa: Any = pyarrow
pc: Any = pyarrow.compute
Column = Any  # an Arrow array
Mask = Any  # an Arrow array of booleans

_COMPARE: dict[Operator, Callable[[Any, Any], Any]] = {
    Operator.EQ: pc.equal,
    Operator.NE: pc.not_equal,
    Operator.GT: pc.greater,
    Operator.GE: pc.greater_equal,
    Operator.LT: pc.less,
    Operator.LE: pc.less_equal,
}
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


class Filter:
    """Compiled once per pack; `apply` keeps the rows for which every condition is true."""

    def __init__(self, conditions: Sequence[Condition], schema: pyarrow.Schema) -> None:
        self._tests = [_compile(condition, schema) for condition in conditions]

    def mask(self, batch: pyarrow.RecordBatch) -> Mask:
        kept: Mask | None = None
        for position, test in self._tests:
            passed = pc.fill_null(test(batch.column(position)), False)
            kept = passed if kept is None else pc.and_(kept, passed)
        return pa.repeat(True, batch.num_rows) if kept is None else kept

    def apply(self, batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        if not self._tests:
            return batch
        kept: pyarrow.RecordBatch = batch.filter(self.mask(batch))
        return kept


def _compile(condition: Condition, schema: pyarrow.Schema) -> tuple[int, Callable[[Column], Mask]]:
    position = schema.get_field_index(condition.column_name)
    if position < 0:
        raise SourceChanged(
            f"The filter names the column {condition.column_name!r}, which is not read; "
            "change the sink's filter, or its columns, and start a new backfill."
        )
    field = schema.field(position)
    if condition.field_path is not None:
        return position, _inside(condition, note_of(field).family)
    if condition.operator in NULL_TESTS:
        return position, pc.is_null if condition.operator is Operator.IS_NULL else pc.is_valid
    note = note_of(field)
    try:
        values = read_values(condition, note.family, note.comparison)
    except ValueError as exc:
        # the source was away when the filter was given, and nobody could check it
        raise Invalid.of(
            "filter",
            f"{condition.column_name} {condition.operator}: {exc}. Change the sink's filter and "
            "start a new backfill.",
        ) from exc
    if condition.operator is Operator.IN:
        return position, _any_of(note, values, field.type)
    if condition.operator is Operator.NOT_IN:
        one_of = _any_of(note, values, field.type)
        # NULL NOT IN (…) is not true, so NULLs stay NULL here and fall out later
        return position, lambda column: pc.if_else(
            pc.is_valid(column), pc.invert(pc.fill_null(one_of(column), False)), None
        )
    return position, _comparison(note, condition.operator, values[0], field.type)


def _inside(condition: Condition, family: Family) -> Callable[[Column], Mask]:
    """A condition on what is inside a JSON column, as text: a missing value is NULL, as null is."""
    try:
        values = read_inner_values(condition, family)
    except ValueError as exc:
        raise Invalid.of("filter", f"{condition.column_name}: {exc}") from exc
    steps = (condition.field_path or "").split(".")
    path = "$" + "".join(f"[{s}]" if s.isdigit() else f"['{s}']" for s in steps)
    operator = condition.operator

    def test(column: Column) -> Mask:
        texts = _inner_texts(column, path)
        if operator in NULL_TESTS:
            return pc.is_null(texts) if operator is Operator.IS_NULL else pc.is_valid(texts)
        tests = [_inner_test(operator, value, texts) for value in values]
        found = tests[0] if tests else pa.repeat(False, len(texts))
        for other in tests[1:]:
            found = pc.or_kleene(found, other)
        if operator is Operator.NOT_IN:
            return pc.if_else(pc.is_valid(texts), pc.invert(pc.fill_null(found, False)), None)
        return found

    return test


def _inner_texts(column: Column, path: str) -> Column:
    import polars as pl

    found = pl.Series(pl.from_arrow(column.cast(pa.large_string()))).str.json_path_match(path)
    return found.to_arrow(compat_level=pl.CompatLevel.oldest())


def _inner_test(operator: Operator, value: Value, texts: Column) -> Mask:
    equal = Operator.EQ if operator in (Operator.IN, Operator.NOT_IN) else operator
    if not isinstance(value, Decimal):
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return _COMPARE[equal](texts, pa.scalar(text, pa.large_string()))
    numbers = pc.match_substring_regex(texts, r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$")
    only = pc.if_else(numbers, texts, pa.scalar(None, pa.large_string()))
    decided = _numeric_comparison(equal, value, pa.large_string())(only)
    # what is no number is not equal to one, and in no order with it
    return pc.if_else(pc.invert(numbers), equal is Operator.NE, decided)


def _any_of(note: FieldNote, values: Sequence[Value], kind: Any) -> Callable[[Column], Mask]:
    tests = [_comparison(note, Operator.EQ, value, kind) for value in values]
    if not tests:
        return lambda column: pa.repeat(False, len(column))

    def test(column: Column) -> Mask:
        found = tests[0](column)
        for other in tests[1:]:
            found = pc.or_(found, other(column))
        return found

    return test


def _comparison(
    note: FieldNote, operator: Operator, value: Value, kind: Any
) -> Callable[[Column], Mask]:
    family = note.family
    if family is Family.FLOAT and isinstance(value, float):
        return _float_comparison(operator, value, kind)
    if family is Family.DECIMAL and isinstance(value, Decimal):
        return _numeric_comparison(operator, value, kind)
    compare = _COMPARE[operator]
    if family in (Family.DATE, Family.TIMESTAMP, Family.INSTANT):
        storage = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        point = _time_point(value, storage)
        # as integers, so that ±infinity, the extremes of the type, compare like any other
        return lambda column: compare(_in_order(column.view(storage)), pa.scalar(point, storage))
    if family is Family.INTEGER:
        return lambda column: compare(column.cast(pa.int64()), pa.scalar(value, pa.int64()))
    if family is Family.UUID and not _is_text(kind):
        raw = pa.scalar(bytes.fromhex(str(value).replace("-", "")), pa.binary())
        return lambda column: compare(_storage(column).cast(pa.binary()), raw)
    if family is Family.BYTES:
        some = pa.scalar(value, pa.large_binary())
        return lambda column: compare(column.cast(pa.large_binary()), some)
    if note.comparison is Comparison.UNPADDED:
        bare = pa.scalar(str(value).rstrip(" "), pa.large_string())
        return lambda column: compare(_unpadded(column), bare)
    if family in (Family.TEXT, Family.TIME, Family.UUID, Family.OTHER):
        text = pa.scalar(str(value), pa.large_string())
        return lambda column: compare(column.cast(pa.large_string()), text)
    return lambda column: compare(column, pa.scalar(value, kind))


def _in_order(column: Column) -> Column:
    """Instants beyond what the type holds as what they are: after all others, before infinity."""
    far = is_far(column) if pa.types.is_int64(column.type) else None
    return column if far is None else pc.if_else(far, pa.scalar(2**63 - 2, pa.int64()), column)


def _unpadded(column: Column) -> Column:
    """What comes before the blanks at the end."""
    return pc.utf8_rtrim(column.cast(pa.large_string()), characters=" ")


def _float_comparison(operator: Operator, value: float, kind: Any) -> Callable[[Column], Mask]:
    """NaN equals itself and is greater than every other number."""
    compare = _COMPARE[operator]
    if value != value:
        return lambda column: _compare_with_nan(operator, pc.is_nan(column))
    scalar = pa.scalar(value, kind)
    if operator in (Operator.GT, Operator.GE):
        return lambda column: pc.or_(compare(column, scalar), pc.is_nan(column))
    return lambda column: compare(column, scalar)


def _compare_with_nan(operator: Operator, is_nan: Mask) -> Mask:
    if operator in (Operator.EQ, Operator.GE):
        return is_nan
    if operator in (Operator.NE, Operator.LT):
        return pc.invert(is_nan)
    always = operator is Operator.LE
    return pc.if_else(pc.is_valid(is_nan), always, None)


def _numeric_comparison(operator: Operator, value: Decimal, kind: Any) -> Callable[[Column], Mask]:
    """Rounding to double keeps the order, so doubles decide wherever they differ; the few rows
    where they are equal are compared digit by digit."""
    near = float(value)
    coarse = _float_comparison(operator, near, pa.float64())

    def test(column: Column) -> Mask:
        doubles = column.cast(pa.string()).cast(pa.float64())
        decided = coarse(doubles)
        ties = pc.fill_null(pc.equal(doubles, pa.scalar(near, pa.float64())), False)
        if not value.is_finite() or not pc.any(ties).as_py():
            return decided
        exact = [_holds(operator, Decimal(str(v)), value) for v in column.filter(ties).to_pylist()]
        return pc.replace_with_mask(decided, ties, pa.array(exact, pa.bool_()))

    return test


def _holds(operator: Operator, left: Decimal, right: Decimal) -> bool:
    return {
        Operator.EQ: left == right,
        Operator.NE: left != right,
        Operator.GT: left > right,
        Operator.GE: left >= right,
        Operator.LT: left < right,
        Operator.LE: left <= right,
    }[operator]


def _time_point(value: Value, storage: Any) -> int:
    bits = storage.bit_width - 1
    if value == "infinity":
        return int(2**bits - 1)
    if value == "-infinity":
        return int(-(2**bits))
    if isinstance(value, datetime):
        return (value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND
    assert isinstance(value, date)
    return (value - _EPOCH.date()).days


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _storage(column: Column) -> Column:
    return column.storage if isinstance(column, pa.ExtensionArray) else column
