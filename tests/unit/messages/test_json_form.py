"""Records as JSON: whatever goes in can be read back, digit for digit."""

import json
import math
import struct
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refill.connectors.kit.json_form import json_lines

# the first example loads the libraries
quickly = settings(deadline=None, max_examples=60)
JSON = {b"form": b"json", b"pg_type": b"jsonb"}
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def batch_of(values: list[Any], kind: pa.DataType, metadata: dict[bytes, bytes] | None = None):
    field = pa.field("v", kind, metadata=metadata or {b"form": b"plain"})
    return pa.record_batch([pa.array(values, kind)], schema=pa.schema([field]))


def record_texts(batch: pa.RecordBatch, **options: Any) -> list[str]:
    """The lines; what is in a record must not break one."""
    *lines, rest = json_lines(batch, **options).to_pybytes().decode().split("\n")
    assert rest == ""
    assert len(lines) == batch.num_rows
    return lines


def read_back(batch: pa.RecordBatch, **options: Any) -> list[Any]:
    texts = record_texts(batch, **options)
    assert all(type(text) is str for text in texts)
    return [json.loads(text, parse_float=Decimal)["v"] for text in texts]


@quickly
@given(st.lists(st.none() | ANY_TEXT))
def test_any_text_comes_back_as_it_was(values):
    for kind in (pa.string(), pa.large_string()):
        assert read_back(batch_of(values, kind)) == values


@quickly
@given(st.lists(ANY_TEXT, min_size=3), st.data())
def test_a_part_of_a_batch_yields_its_own_rows(values, data):
    start = data.draw(st.integers(0, len(values)))
    part = batch_of(values, pa.string()).slice(start, 2)
    assert read_back(part) == values[start : start + 2]


@quickly
@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_whole_numbers_are_exact(values):
    assert read_back(batch_of(values, pa.int64())) == values


def as_number(value: Decimal | None) -> str:
    return '{"v":null}' if value is None else f'{{"v":{value:f}}}'


@quickly
@given(st.lists(st.none() | st.decimals(allow_nan=False, allow_infinity=False, places=9)))
def test_decimals_keep_every_digit(values):
    values = [v for v in values if v is None or abs(v) < 10**25]
    texts = record_texts(batch_of(values, pa.decimal128(38, 9)))
    wide = record_texts(batch_of(values, pa.decimal256(60, 9)))
    assert texts == wide == [as_number(v) for v in values]


def test_decimals_wider_than_128_bits_keep_every_digit():
    values = [Decimal("-1." + "0" * 39 + "7"), Decimal("0E-40"), Decimal("9" * 30 + "." + "9" * 40)]
    texts = record_texts(batch_of(values, pa.decimal256(76, 40)))
    assert texts == [as_number(value) for value in values]


def test_the_number_that_stands_for_nan_is_written_as_nan():
    metadata = {b"form": b"plain", b"nan": b"1000.00"}
    values = [Decimal("999.99"), Decimal("1000.00"), None]
    batch = batch_of(values, pa.decimal128(6, 2), metadata)
    assert record_texts(batch) == ['{"v":999.99}', '{"v":"NaN"}', '{"v":null}']


@quickly
@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False)))
def test_floats_read_back_as_the_same_number(values):
    texts = record_texts(batch_of(values, pa.float64()))
    assert [json.loads(text)["v"] for text in texts] == values


@quickly
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32)))
def test_single_floats_read_back_as_the_same_single(values):
    texts = record_texts(batch_of(values, pa.float32()))
    back = [struct.unpack("f", struct.pack("f", json.loads(text)["v"]))[0] for text in texts]
    assert back == values


def test_a_single_float_is_written_with_its_own_digits():
    assert record_texts(batch_of([0.1], pa.float32())) == ['{"v":0.1}']


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_what_json_has_no_number_for_is_a_string(kind):
    values = [math.nan, math.inf, -math.inf, None]
    assert read_back(batch_of(values, kind)) == ["NaN", "Infinity", "-Infinity", None]


@quickly
@given(st.lists(st.none() | st.datetimes()))
def test_timestamps_are_iso_8601_with_microseconds(values):
    expected = [v and v.isoformat(timespec="microseconds") for v in values]
    assert read_back(batch_of(values, pa.timestamp("us"))) == expected
    zoned = batch_of([v and v.replace(tzinfo=UTC) for v in values], pa.timestamp("us", "UTC"))
    assert read_back(zoned) == [v and v + "Z" for v in expected]


@quickly
@given(st.lists(st.none() | st.datetimes(timezones=st.just(UTC))))
def test_timestamps_can_be_unix_microseconds(values):
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    back = read_back(
        batch_of(values, pa.timestamp("us", "UTC")), timestamp_format="unix_microsecond"
    )
    assert back == [v and (v - epoch) // timedelta(microseconds=1) for v in values]


@quickly
@given(st.lists(st.none() | st.dates()))
def test_dates_are_iso_8601(values):
    assert read_back(batch_of(values, pa.date32())) == [v and v.isoformat() for v in values]


@quickly
@given(st.lists(st.dates()))
def test_dates_beside_an_infinity_are_the_same(values):
    days = [(v - date(1970, 1, 1)).days for v in values] + [2**31 - 1, -(2**31), None]
    batch = batch_of(pa.array(days, pa.int32()).view(pa.date32()), pa.date32())
    expected = [*(v.isoformat() for v in values), "infinity", "-infinity", None]
    assert read_back(batch) == expected


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (-719163, "0001-12-31 BC"),
        (-735525, "0045-03-15 BC"),
        (2932897, "10000-01-01"),
        (2145042905, "5874897-12-31"),
        (-2440588, "4714-11-24 BC"),
    ],
)
def test_dates_outside_four_digit_years_are_as_postgres_prints_them(days, text):
    dates = pa.array([days], pa.int32()).view(pa.date32())
    assert read_back(batch_of(dates, pa.date32())) == [text]
    stamps = pa.array([days * 86_400_000_000 + 1], pa.int64()) if abs(days) < 10**7 else None
    if stamps is not None:
        day, _, era = text.partition(" ")
        zoned = batch_of(stamps.view(pa.timestamp("us", "UTC")), pa.timestamp("us", "UTC"))
        assert read_back(zoned) == [f"{day}T00:00:00.000001Z" + (" BC" if era else "")]


def test_endless_timestamps_say_so():
    ends = pa.array([2**63 - 1, -(2**63), 0, None], pa.int64()).view(pa.timestamp("us", "UTC"))
    batch = batch_of(ends, pa.timestamp("us", "UTC"))
    assert read_back(batch) == ["infinity", "-infinity", "1970-01-01T00:00:00.000000Z", None]
    unix = read_back(batch, timestamp_format="unix_microsecond")
    assert unix == ["infinity", "-infinity", 0, None]


@quickly
@given(st.lists(st.none() | st.binary()))
def test_bytes_are_postgres_hex(values):
    expected = [None if v is None else "\\x" + v.hex() for v in values]
    assert read_back(batch_of(values, pa.binary())) == expected


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY_TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner),
)


@quickly
@given(st.lists(JSON_VALUES), st.sampled_from([None, 2]))
def test_json_is_embedded_and_stays_on_one_line(values, indent):
    texts = [json.dumps(value, indent=indent, ensure_ascii=False) for value in values]
    batch = batch_of([*texts, None], pa.string(), JSON)
    assert read_back(batch) == [*values, None]
    lines = json_lines(batch).to_pybytes()
    assert lines.count(b"\n") == len(values) + 1
    assert lines.count(b"\r") == 0


def test_numeric_that_comes_as_text_is_a_number():
    metadata = {b"form": b"text", b"family": b"decimal"}
    values = ["1.500", "-99999999999999999999999999999999999999999999999999.1", "NaN", None]
    texts = record_texts(batch_of(values, pa.string(), metadata))
    assert texts == ['{"v":1.500}', f'{{"v":{values[1]}}}', '{"v":"NaN"}', '{"v":null}']
    array = record_texts(batch_of(["{1,2}"], pa.string(), {**metadata, b"family": b"other"}))
    assert array == ['{"v":"{1,2}"}']


@quickly
@given(st.lists(st.none() | st.lists(st.none() | ANY_TEXT)))
def test_lists_are_arrays(values):
    for kind in (pa.list_(pa.string()), pa.large_list(pa.string())):
        assert read_back(batch_of(values, kind)) == values


@quickly
@given(st.lists(st.none() | st.lists(st.lists(st.none() | st.integers(0, 9)))))
def test_lists_of_lists_are_arrays_of_arrays(values):
    batch = batch_of(values, pa.list_(pa.list_(pa.int32())))
    assert read_back(batch) == values
    assert read_back(batch.slice(1)) == values[1:]


@quickly
@given(
    st.lists(
        st.none()
        | st.fixed_dictionaries({'a"b': st.none() | ANY_TEXT, "n": st.lists(st.integers(0, 9))})
    )
)
def test_structs_are_objects(values):
    kind = pa.struct([pa.field('a"b', pa.string()), pa.field("n", pa.list_(pa.int64()))])
    batch = batch_of(values, kind)
    assert read_back(batch) == values
    assert read_back(batch.slice(1)) == values[1:]


@quickly
@given(st.lists(st.none() | st.dictionaries(ANY_TEXT, st.none() | st.integers(0, 9))))
def test_maps_are_objects(values):
    pairs = [None if v is None else list(v.items()) for v in values]
    assert read_back(batch_of(pairs, pa.map_(pa.string(), pa.int32()))) == values


def test_the_other_plain_types():
    assert read_back(batch_of([True, False, None], pa.bool_())) == [True, False, None]
    assert read_back(batch_of([None, None], pa.null())) == [None, None]
    assert read_back(batch_of([time(1, 2, 3, 4), None], pa.time64("us"))) == [
        "01:02:03.000004",
        None,
    ]
    coded = pa.array(["a", None, 'q"', "a"]).dictionary_encode()
    assert read_back(batch_of(coded, coded.type)) == ["a", None, 'q"', "a"]


@quickly
@given(st.lists(ANY_TEXT, unique=True, max_size=6), st.integers(0, 3))
def test_column_names_are_escaped_and_keep_their_order(names, rows):
    columns = [pa.array([index] * rows, pa.int32()) for index, _ in enumerate(names)]
    batch = pa.RecordBatch.from_arrays(columns, names=names)
    texts = record_texts(batch)
    expected = [(name, index) for index, name in enumerate(names)]
    assert [json.loads(text, object_pairs_hook=list) for text in texts] == [
        expected or [] for _ in range(rows if names else 0)
    ]


def test_no_rows_are_no_lines():
    batch = batch_of([], pa.int64())
    assert record_texts(batch) == []
    assert json_lines(batch).to_pybytes() == b""
