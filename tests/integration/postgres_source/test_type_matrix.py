"""Every type: what is read, printed again, is what PostgreSQL itself prints."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest

from refill.connectors.files.formats import pour
from refill.connectors.kit.json_form import record_texts
from refill.connectors.postgres.types import FORMS
from refill.domain.pipeline import Condition, Operator
from refill.domain.slice import Whole
from refill.packs.filter import Filter
from tests.integration.postgres_source.conftest import Bed

pc: Any = pyarrow.compute

# (type, values as PostgreSQL reads them)
PLAIN: list[tuple[str, list[str]]] = [
    ("boolean", ["t", "f"]),
    ("smallint", ["-32768", "0", "32767"]),
    ("integer", ["-2147483648", "0", "2147483647"]),
    ("bigint", ["-9223372036854775808", "0", "9223372036854775807"]),
    ("real", ["0", "-0", "1e-45", "3.4028235e38", "NaN", "Infinity", "-Infinity", "0.1"]),
    ("double precision", ["-0", "5e-324", "1.7976931348623157e308", "NaN", "-Infinity", "0.1"]),
    ("text", ["", " ", "a'b\"c\\d", "😀 žluťoučký", "line\nline\ttab\r", "\x01\x7f"]),
    ("varchar(5)", ["", "abc  ", "ěščřž"]),
    ("varchar", ["x" * 100_000]),
    ("char(5)", ["", "ab", "abcde"]),
    ("char", ["x", " "]),
    ("bpchar", ["ab  "]),
    ("name", ["", "pg_class", "x" * 63]),
    ("bytea", ["", "\\x00ff", "\\x" + "ab" * 5000]),
    ("date", ["infinity", "-infinity", "4713-01-01 BC", "5874897-12-31", "0001-01-01"]),
    ("date", ["2024-02-29", "9999-12-31", "10000-01-01", "0044-03-15 BC"]),
    ("timestamp", ["infinity", "-infinity", "4713-01-01 00:00:00 BC", "0001-01-01 00:00:00"]),
    ("timestamp", ["294246-12-31 23:59:59.999999", "294247-01-10 04:00:54.775806"]),
    ("timestamp(0)", ["2024-01-01 12:00:00", "infinity"]),
    ("timestamptz", ["infinity", "-infinity", "4713-01-01 00:00:00+00 BC", "9999-12-31 23:59:59"]),
    ("timestamptz", ["2024-03-31 02:30:00.000001+02", "294247-01-10 04:00:54.775806+00"]),
    ("numeric(12,2)", ["0", "-0.01", "9999999999.99", "-9999999999.99", "NaN"]),
    ("numeric(1)", ["9", "-9", "NaN"]),
    ("numeric(37,37)", ["0." + "9" * 37, "-0." + "0" * 36 + "1", "NaN"]),
    ("numeric(37,0)", ["9" * 37, "-" + "9" * 37, "NaN"]),
    ("numeric(3,-2)", ["99900", "-100", "NaN"]),
    ("numeric(3,5)", ["0.00999", "-0.00001", "NaN"]),
    ("numeric(38,0)", ["9" * 38, "-" + "9" * 38, "NaN"]),
    ("numeric(1000,500)", ["1." + "0" * 499 + "1", "NaN"]),
    ("numeric", ["0", "0.00", "-0.0000000000000000000001", "NaN", "Infinity", "-Infinity"]),
    ("numeric", ["1e1000", "12345678901234567890.123456789012345678901234567890", "1.10"]),
    ("uuid", ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-4fff-bfff-0123456789ab"]),
    ("json", ['{"b": 1,  "a":[1.10, null]}', "null", '"\\u0041"', "1e400"]),
    ("jsonb", ['{"b": 1, "a": [1.10, 12345678901234567890.5]}', "null", '"x"']),
    ("oid", ["0", "4294967295"]),
]
TEXT: list[tuple[str, list[str]]] = [
    ("money", ["-92233720368547758.08", "0", "1234.5"]),
    ("time", ["00:00:00", "24:00:00", "12:34:56.789012"]),
    ("time(0)", ["12:34:56"]),
    ("timetz", ["24:00:00+15:59", "00:00:00-15:59:59", "12:00:00.000001Z"]),
    ("interval", ["1 year 2 mons -3 days 04:05:06.789", "-178000000 years", "0"]),
    ("interval", ["9223372036854 seconds", "1 mon -1 day"]),
    ("interval day to second(2)", ["3 days 04:05:06.78"]),
    ("bit(3)", ["101", "000"]),
    ("varbit", ["", "1", "10101010101"]),
    ("inet", ["1.2.3.4", "1.2.3.4/24", "::1", "fe80::/10", "1.2.3.4/32"]),
    ("cidr", ["10.0.0.0/8", "1.2.3.4/32", "::/0"]),
    ("macaddr", ["08:00:2b:01:02:03"]),
    ("macaddr8", ["08:00:2b:01:02:03:04:05"]),
    ("pg_lsn", ["0/0", "FFFFFFFF/FFFFFFFF"]),
    ('"char"', ["a", ""]),
    ("tid", ["(0,1)", "(4294967295,65535)"]),
    ("xid", ["0", "4294967295"]),
    ("cid", ["1"]),
    ("xid8", ["18446744073709551615"]),
    ("point", ["(0.1,-1e300)"]),
    ("line", ["{1,2,3}"]),
    ("lseg", ["[(0,0),(1,1)]"]),
    ("box", ["(1,1),(0,0)"]),
    ("path", ["[(0,0),(1,1)]", "((0,0),(1,1))"]),
    ("polygon", ["((0,0),(1,1),(1,0))"]),
    ("circle", ["<(0,0),1>"]),
    ("tsvector", ["'a':1A 'it''s':2", ""]),
    ("tsquery", ["'a' & !'b' <-> 'c'"]),
    ("jsonpath", ['$."a"[*]?(@ > 1)']),
    ("regclass", ["pg_class"]),
    ("regtype", ["integer"]),
    ("int2vector", ["1 2 3", ""]),
    ("oidvector", ["1 4294967295"]),
    ("pg_snapshot", ["10:20:10,14,15"]),
    ("integer[]", ["{}", "{1,NULL,3}", "{{1,2},{3,4}}", "[0:1]={5,6}", "[-2:-1][3:3]={{1},{2}}"]),
    ("text[]", ['{"",NULL,"NULL","a,b","\\"","{}"}', "{{{a}},{{b}}}"]),
    ("timestamptz[]", ['{infinity,"2024-01-01 00:00:00+00"}']),
    ("numeric(5,2)[]", ["{NaN,1.10}"]),
    ("bytea[]", ['{"\\\\x00"}']),
    ("double precision[]", ["{0.1,NaN,-Infinity}"]),
    ("int4range", ["empty", "[1,5)", "(,)", "[,3)"]),
    ("numrange", ["[1.10,2.200]", "(,NaN]"]),
    ("tstzrange", ['["2024-01-01 00:00:00+00",infinity)']),
    ("daterange", ["[2024-01-01,)"]),
    ("int4multirange", ["{}", "{[1,2),[5,7)}"]),
    ("int4range[]", ['{empty,"[1,2)"}']),
    ("a_enum", ["sad", 'it\'s, "ok"', "ž"]),
    ("a_enum[]", ["{sad,NULL}"]),
    ("a_composite", ['(1,"a,b",)', "(,,)", '(1,"",{1})']),
    ("a_composite[]", ['{"(1,a,)"}']),
    ("a_domain", ["a  "]),
    ("a_domain_of_domain", ["b"]),
    ("a_domain[]", ["{a}"]),
    ("a_number_domain", ["1.10", "NaN"]),
    ("an_enum_domain", ["sad"]),
    ("a_bool_domain", ["t"]),
    ("a_time_domain", ["infinity", "2024-01-01 00:00:00+00"]),
]
CONTRIB: list[tuple[str, list[str]]] = [
    ("hstore", ['"a"=>NULL, "b"=>"it\'s \\"x\\""', ""]),
    ("ltree", ["a.b.c", ""]),
    ("lquery", ["*.a@*.b"]),
    ("citext", ["", "ABC def", "ž"]),
    ("citext[]", ["{A,b}"]),
    ("cube", ["(1, 2),(3, 4)"]),
    ("isbn", ["978-0-393-04002-9"]),
    ("seg", ["1 .. 2"]),
    ("xml", ["<a>ž</a>", '<?xml version="1.0" encoding="ISO-8859-1"?><a/>', "plain"]),
]
# format() calls a type's output function and no cast; a composite of NULLs only IS NULL too
_PRINTED = "CASE WHEN {0} IS DISTINCT FROM NULL THEN format('%s', {0}) END"
_TYPES = """
CREATE TYPE a_enum AS ENUM ('sad', 'it''s, "ok"', 'ž');
CREATE TYPE a_composite AS (a integer, b text, c integer[]);
CREATE DOMAIN a_domain AS char(5);
CREATE DOMAIN a_domain_of_domain AS a_domain CHECK (value <> 'q');
CREATE DOMAIN a_number_domain AS numeric(12,2);
CREATE DOMAIN an_enum_domain AS a_enum;
CREATE DOMAIN a_bool_domain AS boolean;
CREATE DOMAIN a_time_domain AS timestamptz;
"""


def test_the_built_in_types_and_those_made_of_them(bed: Bed) -> None:
    bed.sql.execute(_TYPES)
    compare(bed, PLAIN + TEXT)


@pytest.mark.usefixtures("with_contrib")
def test_the_types_of_extensions(bed: Bed) -> None:
    for extension in ("hstore", "ltree", "citext", "cube", "isn", "seg"):
        bed.sql.execute(f"CREATE EXTENSION {extension}")
    compare(bed, CONTRIB)


def test_every_type_of_this_server_can_be_read_as_an_array_and_alone(bed: Bed) -> None:
    """No base type of PostgreSQL is left out: a NULL and an empty array of each."""
    found = bed.sql.execute(
        "SELECT oid::regtype::text FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace "
        "AND typtype IN ('b', 'r', 'm') AND typname !~ '^_' AND typrelid = 0 ORDER BY 1"
    ).fetchall()
    names = [name for (name,) in found if name not in ("pg_node_tree",)]
    columns = ", ".join(f"c{number} {name}" for number, name in enumerate(names))
    bed.sql.execute(f"CREATE TABLE every_type ({columns})")
    bed.sql.execute("INSERT INTO every_type DEFAULT VALUES")
    assert bed.rows(bed.reading("every_type"), Whole()) == [
        {f"c{number}": None for number in range(len(names))}
    ]


def test_no_type_is_listed_twice() -> None:
    oids = [oid for form in FORMS for oid in form.oids]
    assert len(oids) == len(set(oids))


def test_an_instant_that_arrow_cannot_hold_is_itself_again_in_a_message(bed: Bed) -> None:
    bed.sql.execute("CREATE TABLE late (at timestamp)")
    late = ["294247-01-10 04:00:54.775807", "294247-01-10 04:00:54.775808"]
    late += ["294276-12-31 23:59:59.999999", "2024-01-01 00:00:00.000000", "infinity", "-infinity"]
    for text in late:
        bed.sql.execute("INSERT INTO late VALUES (%s)", (text,))
    (batch,) = bed.source.read(bed.reading("late"), Whole())
    said = [json.loads(text)["at"] for text in record_texts(batch)]
    assert said == [text.replace(" ", "T") for text in late]
    numbers = [json.loads(text)["at"] for text in record_texts(batch, "unix_microsecond")]
    assert numbers[:3] == [2**63 - 1, 2**63, 9224318015999999999]
    after = Filter((condition(">", "9999-01-01T00:00:00"),), batch.schema)
    assert after.apply(batch).num_rows == 4
    assert Filter((condition("=", "infinity"),), batch.schema).apply(batch).num_rows == 1


def condition(operator: str, value: str) -> Condition:
    return Condition(column_name="at", operator=Operator(operator), comparison_value=value)


def compare(bed: Bed, matrix: list[tuple[str, list[str]]]) -> None:
    """Reads all columns at once, each with a NULL beside its values."""
    height = max(len(values) for _, values in matrix) + 1
    columns = ", ".join(f"c{number} {name}" for number, (name, _) in enumerate(matrix))
    bed.sql.execute(f"CREATE TABLE matrix (id integer PRIMARY KEY, {columns})")
    for row in range(height):
        values = [values[row] if row < len(values) else None for _, values in matrix]
        marks = ", ".join(["%s"] * len(values))
        bed.sql.execute(
            f"INSERT INTO matrix VALUES (%s, {marks})".encode(), (row, *values), prepare=False
        )
    read = bed.reading("matrix")
    schema = bed.source.schema(read)
    batches = list(bed.source.read(read, Whole()))
    assert all(batch.schema.equals(schema, check_metadata=True) for batch in batches)
    read = pa.Table.from_batches(batches).sort_by("id")
    read.validate(full=True)
    problems = []
    for number, (name, _) in enumerate(matrix):
        field = schema.field(f"c{number}")
        expected = [
            text
            for (text,) in bed.sql.execute(
                f"SELECT {_PRINTED.format(f'c{number}')} FROM matrix ORDER BY id"
            )
        ]
        got = [_text(value, field) for value in _raw(read.column(f"c{number}"))]
        if got != expected:
            problems.append((name, got, expected))
    assert problems == []


def _raw(column: Any) -> list[Any]:
    if pa.types.is_date(column.type):
        return list(column.cast(pa.int32()).to_pylist())
    if pa.types.is_timestamp(column.type):
        return list(column.cast(pa.int64()).to_pylist())
    return list(column.to_pylist())


def _text(value: Any, field: Any) -> str | None:
    """An Arrow value as PostgreSQL prints it, by the documented forms and nothing else."""
    if value is None:
        return None
    kind = field.type
    if pa.types.is_boolean(kind):
        return "t" if value else "f"
    if pa.types.is_date(kind):
        return _instant(value, 32, 86_400_000_000, "date", "")
    if pa.types.is_timestamp(kind):
        return _instant(value, 64, 1, "timestamp", "+00" if kind.tz else "")
    if pa.types.is_decimal(kind):
        nan = field.metadata[b"nan"].decode()
        return "NaN" if str(value) == nan else format(value, "f")
    if pa.types.is_binary(kind):
        return "\\x" + value.hex()
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return _float(value, kind)
    return str(value)


def _instant(value: int, bits: int, unit: int, kind: str, zone: str) -> str:
    if value == 2 ** (bits - 1) - 1:
        return "infinity"
    if value == -(2 ** (bits - 1)):
        return "-infinity"
    return _calendar(value * unit, kind, zone)


def _calendar(micros: int, kind: str, zone: str) -> str:
    """Microseconds of 1970 in the proleptic Gregorian calendar, by arithmetic on 400 years."""
    from datetime import UTC, datetime, timedelta

    cycle = 146_097 * 86_400_000_000  # 400 years
    cycles, rest = divmod(micros, cycle)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=rest)
    year = moment.year + 400 * cycles
    era = "" if year > 0 else " BC"
    year = year if year > 0 else 1 - year
    day = f"{year:04d}-{moment.month:02d}-{moment.day:02d}"
    if kind == "date":
        return day + era
    fraction = f".{moment.microsecond:06d}".rstrip("0") if moment.microsecond else ""
    return f"{day} {moment.hour:02d}:{moment.minute:02d}:{moment.second:02d}{fraction}{zone}{era}"


def _float(value: float, kind: Any) -> str:
    import math

    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    import numpy as np

    number = np.float32(value) if pa.types.is_float32(kind) else np.float64(value)
    small = 6 if pa.types.is_float32(kind) else 15
    exponent = 0 if number == 0 else math.floor(math.log10(abs(float(str(number)))))
    if -5 < exponent < small:
        return np.format_float_positional(number, trim="-")
    return np.format_float_scientific(number, trim="-", exp_digits=2)


def test_parquet_rejects_the_row_that_it_cannot_hold_and_takes_the_others(
    bed: Bed, tmp_path: Path
) -> None:
    bed.sql.execute("CREATE TABLE late (id int PRIMARY KEY, at timestamp)")
    bed.sql.execute("INSERT INTO late VALUES (7, '294276-01-01'), (8, '2024-01-01'), (9, NULL)")
    read = bed.reading("late")
    with (tmp_path / "data.parquet").open("wb") as file:
        poured = pour(
            "parquet",
            bed.source.schema(read),
            bed.source.read(read, Whole()),
            file,
            key=read.table.key,
        )
    assert (poured.rows, poured.rejected) == (2, 1)
    assert [(reject.key, reject.reason) for reject in poured.rejects] == [
        (("7",), "timestamp out of range")
    ]
    assert pq.read_table(tmp_path / "data.parquet").column("id").to_pylist() == [8, 9]
