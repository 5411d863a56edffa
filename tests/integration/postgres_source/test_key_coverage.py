"""Slices cut from sampled boundaries hold each key exactly once, whatever its type."""

from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refill.connectors.postgres.quoting import literal
from refill.domain.slice import KeyRange, NullKeys
from refill.domain.spec import KeyedRead
from refill.planning.plan import PlanSettings
from tests.integration.postgres_source.conftest import Bed
from tests.servers.postgres import PostgresServer
from tests.specs import slices_of

_TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=8)
_FLOATS = st.sampled_from(["0", "-0", "NaN", "Infinity", "-Infinity", "5e-324", "0.1"]) | st.floats(
    allow_nan=False
).map(repr)
_INSTANTS = st.sampled_from(
    ["infinity", "-infinity", "4713-01-01 00:00:00+00 BC", "294246-12-31 23:59:59.999999+00"]
) | st.datetimes(min_value=datetime(1, 1, 1)).map(lambda at: at.isoformat() + "+00")
_INTEGERS = st.sampled_from([-(2**63), 2**63 - 1, 0, -1]) | st.integers(-100, 100)

# type → values as text. Heavy skew: many near zero, some at the extremes.
KEYS: dict[str, st.SearchStrategy[str]] = {
    "bigint": (_INTEGERS | st.integers(-(2**63), 2**63 - 1)).map(str),
    "uuid": st.binary(min_size=16, max_size=16).map(lambda raw: str(UUID(bytes=raw))),
    "text": _TEXT,
    'text COLLATE "C"': _TEXT,
    'text COLLATE "und-x-icu"': _TEXT,
    'text COLLATE "de-AT-x-icu"': st.sampled_from(["a", "A", "ä", "Ä", "z", "ß", "ss"]) | _TEXT,
    "text COLLATE blind": st.text("aAbBäÄ", max_size=3),
    "varchar(4)": st.text("ab'\\ \"", max_size=4),
    "char(3)": st.text("ab ", max_size=3),
    "timestamptz": _INSTANTS,
    "timestamp": _INSTANTS.map(lambda text: text.replace("+00", "")),
    "date": st.sampled_from(["infinity", "-infinity", "4713-01-01 BC", "5874897-12-31"])
    | st.dates(min_value=date(1, 1, 1)).map(str),
    "numeric": st.sampled_from(["NaN", "Infinity", "-Infinity", "1e100", "-1e-100"])
    | st.decimals(allow_nan=False, allow_infinity=False, places=3).map(lambda d: format(d, "f")),
    "numeric(12,2)": st.decimals(-(10**9), 10**9, places=2).map(str),
    "double precision": _FLOATS,
    "real": st.sampled_from(["0", "1e-45", "3.4028235e38", "NaN", "-Infinity", "0.1", "16777217"]),
    "mood": st.sampled_from(["zzz", "aaa", "mmm", "it's"]),
    "bytea": st.binary(max_size=6).map(lambda raw: "\\x" + raw.hex()),
    "boolean": st.sampled_from(["t", "f"]),
    "interval": st.timedeltas(timedelta(days=-9999), timedelta(days=9999)).map(
        lambda delta: f"{delta.total_seconds():f} seconds"
    ),
    "inet": st.ip_addresses().map(str),
    "money": st.integers(-(10**6), 10**6).map(lambda cents: str(Decimal(cents) / 100)),
    "integer[]": st.lists(st.integers(-9, 9), max_size=3).map(
        lambda items: "{" + ",".join(map(str, items)) + "}"
    ),
    "int4range": st.tuples(st.integers(-9, 0), st.integers(0, 9)).map(
        lambda ends: f"[{ends[0]},{ends[1]})"
    ),
    "pair": st.tuples(st.integers(0, 3), _TEXT.filter(str.isalnum)).map(
        lambda both: f"({both[0]},{both[1]})"
    ),
}
_PREPARE = """
CREATE TYPE mood AS ENUM ('zzz', 'aaa', 'mmm', 'it''s');
CREATE TYPE pair AS (a integer, b text);
CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
"""
_SMALL = PlanSettings(slots=4, smallest_slice_rows=1, rows_per_slice=3)


@pytest.fixture(scope="module")
def shared(postgres: PostgresServer) -> Any:
    if not postgres.has_contrib:
        pytest.skip("needs a PostgreSQL with ICU: apt-get install postgresql")
    bed = Bed(postgres.create_database())
    bed.sql.execute(_PREPARE)
    yield bed
    bed.close()


@pytest.mark.parametrize("key_type", KEYS)
def test_a_key_is_in_exactly_one_slice(shared: Bed, key_type: str) -> None:
    @settings(
        max_examples=5,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    @given(st.lists(st.none() | KEYS[key_type], min_size=1, max_size=60))
    def each_is_read_once(keys: list[str | None]) -> None:
        shared.sql.execute("DROP TABLE IF EXISTS keyed")
        shared.sql.execute(f'CREATE TABLE keyed ("n" {key_type}, "ORDER" integer)')
        _insert(shared.sql, [(key, number) for number, key in enumerate(keys)])
        read = shared.reading("keyed", sort_columns=("n",), columns=("ORDER",))
        _assert_each_once(shared, read, len(keys))

    each_is_read_once()


@pytest.mark.parametrize(
    "types", [("integer", 'text COLLATE "und-x-icu"'), ("text", "timestamptz"), ("mood", "numeric")]
)
def test_a_composite_key_is_in_exactly_one_slice(shared: Bed, types: tuple[str, str]) -> None:
    first = KEYS.get(types[0], st.integers(-3, 3).map(str))

    @settings(
        max_examples=8,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    @given(st.lists(st.tuples(st.none() | first, st.none() | KEYS[types[1]]), max_size=60))
    def each_is_read_once(keys: list[tuple[str | None, str | None]]) -> None:
        shared.sql.execute("DROP TABLE IF EXISTS keyed")
        shared.sql.execute(f"CREATE TABLE keyed (a {types[0]}, b {types[1]}, c integer)")
        _insert(shared.sql, [(*key, number) for number, key in enumerate(keys)])
        read = shared.reading("keyed", sort_columns=("a", "b"), columns=("c",))
        _assert_each_once(shared, read, len(keys))

    each_is_read_once()


def test_a_start_and_an_end_are_both_inside(shared: Bed) -> None:
    shared.sql.execute("DROP TABLE IF EXISTS part")
    shared.sql.execute("CREATE TABLE part (at timestamptz, n integer)")
    shared.sql.execute(
        "INSERT INTO part SELECT timestamptz '2024-01-01' + n * interval '1 hour', n "
        "FROM generate_series(0, 999) n"
    )
    read = shared.reading(
        "part",
        sort_columns=("at",),
        columns=("n",),
        start_position="2024-01-02T00:00:00Z",
        end_position="2024-01-03T00:00:00Z",
    )
    found = _numbers(shared, read)
    assert sorted(found) == list(range(24, 49))


def test_a_nullable_composite_type_is_read_with_its_half_empty_values(shared: Bed) -> None:
    shared.sql.execute("DROP TABLE IF EXISTS halves")
    shared.sql.execute("CREATE TABLE halves (p pair, n integer)")
    _insert(shared.sql, [("(1,)", 0), ("(,)", 1), (None, 2), ("(1,a)", 3)], "halves")
    read = shared.reading("halves", sort_columns=("p",), columns=("n",))
    assert sorted(_numbers(shared, read)) == [0, 1, 2, 3]


def test_a_slice_open_on_both_sides_and_the_rest_are_the_whole_table(shared: Bed) -> None:
    shared.sql.execute("DROP TABLE IF EXISTS ends")
    shared.sql.execute("CREATE TABLE ends (a integer, b integer, n integer)")
    _insert(shared.sql, [(1, None, 0), (None, 1, 1), (1, 1, 2), (None, None, 3)], "ends")
    read = shared.reading("ends", sort_columns=("a", "b"), columns=("n",))
    inner = [row["n"] for row in shared.rows(read, KeyRange())]
    above = [row["n"] for row in shared.rows(read, KeyRange(lower=("0", "0")))]
    rest = [row["n"] for row in shared.rows(read, NullKeys())]
    assert (inner, above, sorted(rest)) == ([2], [2], [0, 1, 3])


def _insert(sql: psycopg.Connection[Any], rows: list[Any], table: str = "keyed") -> None:
    if not rows:
        return
    values = ", ".join(
        f"({', '.join('NULL' if part is None else literal(str(part)) for part in row)})"
        for row in rows
    )
    sql.execute(f"INSERT INTO {table} VALUES {values}".encode())


def _assert_each_once(bed: Bed, read: KeyedRead, count: int) -> None:
    found = Counter(_numbers(bed, read))
    assert found == Counter(range(count))


def _numbers(bed: Bed, read: KeyedRead) -> list[int]:
    extents = slices_of(bed.source, read, _SMALL)
    return [
        number for extent in extents for row in bed.rows(read, extent) for number in row.values()
    ]
