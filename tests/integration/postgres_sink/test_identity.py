"""PostgreSQL → PostgreSQL: every value is what it was, the table has the same types and key."""

from pathlib import Path

import psycopg
import pytest

from refill.domain.errors import SinkRefused
from refill.domain.slice import KeyRange, Whole
from tests.integration.postgres_sink.pipe import Pipe, find_table, job_of
from tests.servers.postgres import PostgresServer

EVERY_TYPE = (Path(__file__).parent / "every_type.sql").read_text()
TYPES_ONLY = EVERY_TYPE.split("CREATE TABLE")[0]
NAME = 'Odd "names" ÿ'
QUOTED = '"Odd ""names"" ÿ"'


def texts(url: str, table: str = QUOTED) -> list[tuple[str, ...]]:
    with psycopg.connect(url) as connection:
        connection.execute("SET extra_float_digits = 1; SET timezone = 'UTC'")
        columns = connection.execute(f"SELECT * FROM {table} LIMIT 0").description or []
        names = ", ".join('"' + column.name.replace('"', '""') + '"::text' for column in columns)
        rows = connection.execute(f"SELECT {names} FROM {table} ORDER BY 1").fetchall()
        return [tuple(row) for row in rows]


def column_types(url: str, table: str = QUOTED) -> list[tuple[str, str]]:
    with psycopg.connect(url) as connection:
        return connection.execute(  # type: ignore[return-value]
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum",
            (table,),
        ).fetchall()


@pytest.fixture
def pipe(postgres: PostgresServer) -> Pipe:
    return Pipe(postgres.create_database("source"), postgres.create_database("sink"))


def run_sql(url: str, sql: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql)  # type: ignore[arg-type]


def test_every_value_arrives_as_it_was(pipe: Pipe) -> None:
    run_sql(pipe.source_url, EVERY_TYPE)
    run_sql(pipe.sink_url, TYPES_ONLY)
    job = job_of(find_table(pipe.source_url, NAME))
    written = pipe.run(job, KeyRange())
    assert written.rows_delivered == 5
    assert column_types(pipe.sink_url) == column_types(pipe.source_url)
    assert texts(pipe.sink_url) == texts(pipe.source_url)
    # again, over rows that are there: the upsert's way
    run_sql(pipe.sink_url, f"UPDATE {QUOTED} SET t = 'stale', jb = NULL, n2 = 1")
    pipe.run(job, KeyRange(), attempt=2)
    assert texts(pipe.sink_url) == texts(pipe.source_url)


MOOD = "CREATE TYPE mood AS ENUM ('calm', 'très agité');"
PLAIN = """
CREATE TABLE plain (
    id bigint PRIMARY KEY, b boolean, i2 smallint, i4 integer, f4 real, f8 double precision,
    n2 numeric(12,2), t text, v varchar(10), c char(5), by bytea, d date, ts timestamp,
    tz timestamptz, j json, jb jsonb, u uuid, m mood
);
INSERT INTO plain SELECT n, n % 2 = 0, n, n, n / 3.0, n / 7.0, n / 100.0, 't' || n, 'v' || n, 'c',
    decode(lpad(to_hex(n), 8, '0'), 'hex'), date '2024-01-01' + n,
    timestamp '2024-01-01' + n * interval '1 hour',
    timestamptz '1969-01-01' + n * interval '1 day 1 microsecond', ('{"a":  ' || n || '}')::json,
    jsonb_build_object('a', n), md5(n::text)::uuid,
    (enum_range(NULL::mood))[1 + abs(n) % 2] FROM generate_series(-500, 500) n;
INSERT INTO plain (id) VALUES (501);
INSERT INTO plain (id, n2, d, ts, tz) VALUES (502, 'NaN', 'infinity', '-infinity', 'infinity');
"""


def test_plain_types_are_copied_straight_into_an_empty_range(pipe: Pipe) -> None:
    run_sql(pipe.source_url, MOOD + PLAIN)
    run_sql(pipe.sink_url, MOOD)
    job = job_of(find_table(pipe.source_url, "plain"))
    pipe.run(job, KeyRange())
    assert texts(pipe.sink_url, "plain") == texts(pipe.source_url, "plain")
    run_sql(pipe.sink_url, "DELETE FROM plain WHERE id % 3 = 0; UPDATE plain SET t = 'stale'")
    pipe.run(job, KeyRange(), attempt=2)
    assert texts(pipe.sink_url, "plain") == texts(pipe.source_url, "plain")


def test_the_key_comes_along(pipe: Pipe) -> None:
    run_sql(pipe.source_url, "CREATE TABLE k (a int, b text, c int, PRIMARY KEY (b, a))")
    pipe.run(job_of(find_table(pipe.source_url, "k")), KeyRange())
    assert find_table(pipe.sink_url, "k").primary_key == ("b", "a")


def test_a_table_of_nothing_but_its_key_can_be_delivered_twice(pipe: Pipe) -> None:
    run_sql(pipe.source_url, "CREATE TABLE k (a int PRIMARY KEY); INSERT INTO k VALUES (1), (2)")
    job = job_of(find_table(pipe.source_url, "k"))
    pipe.run(job, KeyRange())
    pipe.run(job, KeyRange(), attempt=2)
    assert texts(pipe.sink_url, "k") == [("1",), ("2",)]


def test_a_table_without_a_key_is_delivered_once_by_a_backfill(pipe: Pipe) -> None:
    run_sql(pipe.source_url, "CREATE TABLE k (a int); INSERT INTO k VALUES (1), (1), (NULL)")
    job = job_of(find_table(pipe.source_url, "k"))
    first = pipe.run(job, Whole())
    again = pipe.run(job, Whole(), attempt=2)
    assert first.rows_delivered == again.rows_delivered == 3
    assert len(texts(pipe.sink_url, "k")) == 3


def test_a_type_that_the_destination_lacks_is_named(pipe: Pipe) -> None:
    run_sql(
        pipe.source_url,
        "CREATE TYPE mood AS ENUM ('a'); CREATE TABLE k (a int PRIMARY KEY, m mood)",
    )
    with pytest.raises(SinkRefused, match=r"type .*mood.* does not exist.*create it there"):
        pipe.run(job_of(find_table(pipe.source_url, "k")), KeyRange())


def test_another_table_and_schema_may_be_named(pipe: Pipe) -> None:
    run_sql(pipe.source_url, "CREATE TABLE k (a int PRIMARY KEY); INSERT INTO k VALUES (1)")
    job = job_of(find_table(pipe.source_url, "k"))
    pipe.run(job, KeyRange(), table="archive.k copy")
    assert texts(pipe.sink_url, 'archive."k copy"') == [("1",)]


def test_types_of_extensions_arrive_as_they_were(pipe: Pipe, postgres: PostgresServer) -> None:
    if not postgres.has_contrib:
        pytest.skip("this PostgreSQL has no contrib modules: install postgresql-contrib")
    extensions = "CREATE EXTENSION hstore; CREATE EXTENSION ltree; CREATE EXTENSION citext;"
    run_sql(
        pipe.source_url,
        extensions + "CREATE TABLE k (a citext PRIMARY KEY, h hstore, l ltree, ca citext[]);"
        """INSERT INTO k VALUES ('Ab', '"x y"=>NULL, b=>"1"', 'Top.Science', '{Q,NULL}'),
        ('C', '', '', '{}'), ('d', NULL, NULL, NULL)""",
    )
    job = job_of(find_table(pipe.source_url, "k"))
    with pytest.raises(SinkRefused, match="create it there"):
        pipe.run(job, KeyRange())
    run_sql(pipe.sink_url, extensions)
    pipe.run(job, KeyRange())
    pipe.run(job, KeyRange(), attempt=2)
    assert texts(pipe.sink_url, "k") == texts(pipe.source_url, "k")
    assert column_types(pipe.sink_url, "k") == column_types(pipe.source_url, "k")


def test_an_instant_that_arrow_cannot_hold_arrives_as_it_was(pipe: Pipe) -> None:
    run_sql(
        pipe.source_url,
        "CREATE TABLE late (id int PRIMARY KEY, at timestamp, tz timestamptz);"
        "SET timezone = 'UTC';"
        "INSERT INTO late VALUES "
        "(1, '294247-01-10 04:00:54.775807', '294247-01-10 04:00:54.775808'),"
        "(2, '294276-12-31 23:59:59.999999', '294276-12-31 23:59:59.999999'),"
        "(3, 'infinity', '-infinity'), (4, NULL, '4713-01-01 00:00:00 BC'), (5, now(), now())",
    )
    assert pipe.run(job_of(find_table(pipe.source_url, "late")), KeyRange()).rows_delivered == 5
    assert texts(pipe.sink_url, "late") == texts(pipe.source_url, "late")
