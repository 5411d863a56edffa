"""Times, JSON and cursors survive the way into the store and back."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refill.domain.backfill import Counters
from refill.domain.errors import Invalid
from refill.domain.pipeline import Condition, Operator
from refill.store import cursor, rows


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_moment_keeps_its_microsecond(moment: datetime) -> None:
    assert rows.to_datetime(rows.to_micros(moment)) == moment


def test_a_moment_of_another_zone_is_the_same_moment() -> None:
    here = datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert rows.to_datetime(rows.to_micros(here)) == here


def test_no_moment_is_none() -> None:
    assert rows.to_micros_or_none(None) is None
    assert rows.to_datetime_or_none(None) is None


def test_counters_come_back_equal() -> None:
    counters = Counters(slices_total=3, rows_read=2**60)
    assert rows.counters_of(rows.counters_to_json(counters)) == counters


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError):
        rows.to_json(object())


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values)
def test_json_comes_back_exactly_however_long_its_integers_are(value: object) -> None:
    text = rows.to_json(value)
    assert rows.from_json(text) == value
    assert rows.to_json(rows.from_json(text)) == text


def test_a_record_with_a_long_integer_is_stored() -> None:
    condition = Condition(column_name="n", operator=Operator.GT, comparison_value=2 * 10**19)
    assert rows.from_json(rows.to_json((condition,)))[0]["comparison_value"] == 2 * 10**19


def test_what_is_no_json_beside_a_long_integer_is_refused() -> None:
    with pytest.raises(TypeError):
        rows.to_json([2**70, object()])


@given(st.integers(0, 10**17))
def test_a_cursor_gives_its_position_back(position: int) -> None:
    assert cursor.decode(cursor.encode(position)) == position


@given(st.text())
def test_any_other_text_is_an_invalid_cursor(text: str) -> None:
    try:
        position = cursor.decode(text)
    except Invalid:
        return
    assert cursor.decode(cursor.encode(position)) == position
