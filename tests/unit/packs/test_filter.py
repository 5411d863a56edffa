"""Filters over Arrow batches mean what they would mean in PostgreSQL."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from refill.connectors.kit.fields import FieldNote
from refill.domain.errors import Invalid, SourceChanged
from refill.domain.pipeline import Condition, Operator
from refill.domain.table import Comparison, Family
from refill.packs.filter import Filter

NAN, INF = float("nan"), float("inf")
UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"


def kept(
    family: Family,
    kind: Any,
    values: list[Any],
    operator: str,
    value: Any = None,
    comparison: Comparison = Comparison.FAMILY,
) -> list[int]:
    """The positions of the values for which the condition is true."""
    note = FieldNote(family=family, comparison=comparison)
    field = pa.field("c", kind, metadata=note.metadata())
    batch = pa.RecordBatch.from_arrays([pa.array(values, kind)], schema=pa.schema([field]))
    condition = Condition(column_name="c", operator=Operator(operator), comparison_value=value)
    mask = Filter([condition], batch.schema).mask(batch)
    assert mask.null_count == 0
    return [position for position, passed in enumerate(mask.to_pylist()) if passed]


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        ("=", 2, [1]),
        ("!=", 2, [0, 2]),
        (">", 1, [1, 2]),
        (">=", 2, [1, 2]),
        ("<", 2, [0]),
        ("<=", "2", [0, 1]),
        ("in", [1, 3, 9], [0, 2]),
        ("not in", [1, 3], [1]),
        ("not in", [], [0, 1, 2]),
        ("in", [], []),
        ("is null", None, [3]),
        ("is not null", None, [0, 1, 2]),
        ("<", 2**62, [0, 1, 2]),
    ],
)
def test_a_comparison_with_null_is_never_true(
    operator: str, value: Any, expected: list[int]
) -> None:
    assert kept(Family.INTEGER, pa.int16(), [1, 2, 3, None], operator, value) == expected


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        (">", 1.5, [1, 2, 3]),
        ("<", 1.5, [0]),
        ("!=", 2.0, [0, 2, 3]),
        ("=", "NaN", [3]),
        (">=", "NaN", [3]),
        ("<", "NaN", [0, 1, 2]),
        ("<=", "NaN", [0, 1, 2, 3]),
        (">", "NaN", []),
        ("=", "Infinity", [2]),
    ],
)
def test_nan_equals_itself_and_is_the_greatest(
    operator: str, value: Any, expected: list[int]
) -> None:
    values = [1.0, 2.0, INF, NAN, None]
    assert kept(Family.FLOAT, pa.float64(), values, operator, value) == expected


def test_a_real_is_compared_as_a_real() -> None:
    assert kept(Family.FLOAT, pa.float32(), [0.1, 0.2], "=", 0.1) == [0]


@pytest.mark.parametrize("kind", [pa.decimal128(38, 20), pa.string()])
def test_a_numeric_keeps_every_digit(kind: Any) -> None:
    texts = ["1.00000000000000000001", "1.00000000000000000002", "0.99999999999999999999", "2"]
    values = [Decimal(text) for text in texts] if kind != pa.string() else texts

    assert kept(Family.DECIMAL, kind, values, "=", "1.00000000000000000001") == [0]
    assert kept(Family.DECIMAL, kind, values, ">", "1.00000000000000000001") == [1, 3]
    assert kept(Family.DECIMAL, kind, values, "<=", "1.00000000000000000001") == [0, 2]
    assert kept(Family.DECIMAL, kind, values, "in", [2, "0.99999999999999999999"]) == [2, 3]


def test_a_numeric_may_be_nan_or_infinite() -> None:
    values = ["NaN", "Infinity", "-Infinity", "1.0", None]

    assert kept(Family.DECIMAL, pa.string(), values, ">", 0.5) == [0, 1, 3]
    assert kept(Family.DECIMAL, pa.string(), values, "=", 1) == [3]
    assert kept(Family.DECIMAL, pa.string(), values, "=", "NaN") == [0]
    assert kept(Family.DECIMAL, pa.string(), values, "<", "Infinity") == [2, 3]


def test_times_compare_as_instants_and_infinity_is_beyond_them() -> None:
    kind = pa.timestamp("us", tz="UTC")
    values = pa.array([0, 1_700_000_000_000_000, 2**63 - 1, -(2**63), None], pa.int64())
    column = values.view(kind)
    field = pa.field("c", kind)  # no note: by its Arrow type
    batch = pa.RecordBatch.from_arrays([column], schema=pa.schema([field]))

    def positions(operator: str, value: str) -> list[int]:
        condition = Condition(column_name="c", operator=Operator(operator), comparison_value=value)
        mask = Filter([condition], batch.schema).mask(batch)
        return [position for position, passed in enumerate(mask.to_pylist()) if passed]

    assert positions(">", "2000-01-01T00:00:00+02:00") == [1, 2]
    assert positions("=", "2023-11-14T22:13:20Z") == [1]
    assert positions("=", "infinity") == [2]
    assert positions("<", "1970-01-01") == [3]


def test_dates_and_wall_clock_times_compare() -> None:
    days = [date(2024, 1, 1), date(2024, 1, 2), None]
    assert kept(Family.DATE, pa.date32(), days, ">=", "2024-01-02") == [1]
    moments = [datetime(2024, 1, 1, 12), datetime(2024, 1, 1, 13, tzinfo=UTC).replace(tzinfo=None)]
    kind = pa.timestamp("us")
    assert kept(Family.TIMESTAMP, kind, moments, ">", "2024-01-01T12:00:00") == [1]


def test_a_uuid_compares_whatever_its_form() -> None:
    raw = bytes.fromhex(UUID.replace("-", ""))
    assert kept(Family.UUID, pa.string(), [UUID, None], "=", UUID.upper()) == [0]
    assert kept(Family.UUID, pa.binary(16), [raw, bytes(16)], "in", ["{" + UUID + "}"]) == [0]


def test_blanks_at_the_end_of_a_padded_text_mean_nothing() -> None:
    values = ["ab  ", "ab", " ab ", "abc ", "ab\t", "    ", "", None]

    def found(operator: str, value: Any) -> list[int]:
        return kept(Family.TEXT, pa.string(), values, operator, value, Comparison.UNPADDED)

    assert found("=", "ab") == [0, 1]
    assert found("=", "ab   ") == [0, 1]
    assert found("!=", "ab ") == [2, 3, 4, 5, 6]
    assert found("in", ["abc", " "]) == [3, 5, 6]
    assert found("not in", ["ab", ""]) == [2, 3, 4]
    assert found("is null", None) == [7]
    assert kept(Family.TEXT, pa.string(), values, "=", "ab") == [1]


def test_a_filter_that_nobody_could_check_fails_for_good() -> None:
    with pytest.raises(Invalid, match=r"c =: this type compares .* Change the sink's filter"):
        kept(Family.TEXT, pa.string(), ["a"], "=", "A", Comparison.SOURCE_ONLY)


def test_text_booleans_and_unknown_types_compare() -> None:
    assert kept(Family.TEXT, pa.string(), ["a", "b", None], "!=", "a") == [1]
    assert kept(Family.BOOLEAN, pa.bool_(), [True, False, None], "=", "false") == [1]
    assert kept(Family.OTHER, pa.string(), ["10.0.0.1", None], "=", "10.0.0.1") == [0]
    assert kept(Family.INTEGER, pa.int32(), [1, 2], ">", 1) == [1]


def test_bytes_compare_byte_by_byte() -> None:
    values = [b"\x00\xff", b"\x00", None]
    assert kept(Family.BYTES, pa.binary(), values, "=", "\\x00FF") == [0]
    assert kept(Family.BYTES, pa.binary(), values, "not in", ["\\x00"]) == [0]
    with pytest.raises(Invalid, match="bytes in hexadecimal"):
        kept(Family.BYTES, pa.binary(), values, "=", "00ff")


def test_all_conditions_must_hold() -> None:
    schema = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.string())])
    batch = pa.RecordBatch.from_pydict({"a": [1, 2, 3], "b": ["x", "x", None]}, schema=schema)
    conditions = [
        Condition(column_name="a", operator=Operator.GT, comparison_value=1),
        Condition(column_name="b", operator=Operator.IS_NOT_NULL),
    ]

    assert Filter(conditions, schema).apply(batch).to_pydict() == {"a": [2], "b": ["x"]}
    assert Filter([], schema).apply(batch) is batch


def test_a_column_that_is_not_read_is_told() -> None:
    condition = Condition(column_name="gone", operator=Operator.IS_NULL)
    with pytest.raises(SourceChanged, match="gone"):
        Filter([condition], pa.schema([pa.field("a", pa.int64())]))


DOCUMENTS = [
    '{"a": {"b": "x"}, "n": 5, "l": [{"k": true}]}',
    '{"a": {"b": "5"}, "n": 12345678901234567, "l": []}',
    '{"a": null, "n": "5"}',
    None,
]


@pytest.mark.parametrize(
    ("path", "operator", "value", "expected"),
    [
        ("a.b", "=", "x", [0]),
        ("a.b", "!=", "x", [1]),
        ("a.b", "in", ["x", "5"], [0, 1]),
        ("a.b", "not in", ["x"], [1]),
        ("a.b", "is null", None, [2, 3]),
        ("a.b", "is not null", None, [0, 1]),
        ("n", ">", 4, [0, 1, 2]),
        ("n", "=", 12345678901234567, [1]),
        ("n", "=", 12345678901234568, []),
        ("l.0.k", "=", True, [0]),
    ],
)
def test_a_path_looks_inside_json(
    path: str, operator: str, value: Any, expected: list[int]
) -> None:
    field = pa.field("c", pa.string(), metadata=FieldNote(family=Family.JSON).metadata())
    batch = pa.RecordBatch.from_arrays([pa.array(DOCUMENTS)], schema=pa.schema([field]))
    condition = Condition(
        column_name="c", operator=Operator(operator), comparison_value=value, field_path=path
    )
    mask = Filter([condition], batch.schema).mask(batch)
    assert [position for position, passed in enumerate(mask.to_pylist()) if passed] == expected


@pytest.mark.parametrize(
    ("family", "path", "operator", "value"),
    [
        (Family.TEXT, "a", "=", "x"),
        (Family.JSON, "a..b", "=", "x"),
        (Family.JSON, "a']", "=", "x"),
        (Family.JSON, "a", ">", "x"),
        (Family.JSON, "a", "=", None),
        (Family.JSON, "a", "is null", 1),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(
    family: Family, path: str, operator: str, value: Any
) -> None:
    field = pa.field("c", pa.string(), metadata=FieldNote(family=family).metadata())
    condition = Condition(
        column_name="c", operator=Operator(operator), comparison_value=value, field_path=path
    )
    with pytest.raises(Invalid, match="filter"):
        Filter([condition], pa.schema([field]))
