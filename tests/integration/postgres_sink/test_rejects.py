"""Rows that the destination cannot take: named by key and reason, or the slice fails."""

import psycopg
import pyarrow as pa
import pytest

from refill.domain.errors import SinkRefused, TooManyRejects
from refill.domain.slice import KeyRange
from tests.contract.sinks.bed import ORDERS, SCHEMA
from tests.integration.postgres_sink.pipe import Pipe, find_table, job_of, open_sink, ticket_of
from tests.integration.postgres_sink.test_identity import run_sql, texts
from tests.servers.postgres import PostgresServer


@pytest.fixture
def pipe(postgres: PostgresServer) -> Pipe:
    made = Pipe(postgres.create_database("source"), postgres.create_database("sink"))
    run_sql(
        made.source_url,
        "CREATE TABLE k (id bigint PRIMARY KEY, n bigint, t text);"
        "INSERT INTO k SELECT i, i, 't' || i FROM generate_series(1, 5000) i;"
        "UPDATE k SET n = 99999999999 WHERE id IN (17, 4000);"
        "UPDATE k SET t = repeat('x', 20) WHERE id = 900",
    )
    return made


NARROW = "CREATE TABLE k (id bigint PRIMARY KEY, n integer, t varchar(10))"


def test_rows_that_do_not_fit_are_rejected_with_key_and_reason(pipe: Pipe) -> None:
    run_sql(pipe.sink_url, NARROW)
    job = job_of(find_table(pipe.source_url, "k"), max_rejects=3)
    written = pipe.run(job, KeyRange())
    assert written.rows_delivered == 4997
    assert written.rows_rejected == 3
    reasons = {reject.key: reject.reason for reject in written.rejects}
    assert reasons == {
        ("17",): "integer out of range",
        ("4000",): "integer out of range",
        ("900",): "value too long for type character varying(10)",
    }
    assert len(texts(pipe.sink_url, "k")) == 4997


def test_one_reject_more_than_allowed_fails_the_slice_whole(pipe: Pipe) -> None:
    run_sql(pipe.sink_url, NARROW)
    job = job_of(find_table(pipe.source_url, "k"), max_rejects=2)
    with pytest.raises(TooManyRejects, match=r"3 row.*2 are allowed") as met:
        pipe.run(job, KeyRange())
    assert {reject.key for reject in met.value.rejects} == {("17",), ("900",), ("4000",)}
    assert met.value.count == 3
    assert texts(pipe.sink_url, "k") == []


def test_without_an_allowance_the_first_one_is_named(pipe: Pipe) -> None:
    run_sql(pipe.sink_url, NARROW)
    with pytest.raises(TooManyRejects, match=r"\(17\): integer out of range"):
        pipe.run(job_of(find_table(pipe.source_url, "k")), KeyRange())


def test_many_bad_rows_in_one_batch_are_told_one_by_one(pipe: Pipe) -> None:
    job = job_of(ORDERS, max_rejects=100)
    batch = pa.RecordBatch.from_pydict(
        {
            "id": list(range(150)),
            "note": ["a\x00b" if n % 3 else "fine" for n in range(150)],
            "day": [None] * 150,
        },
        schema=SCHEMA,
    )
    sink = open_sink(pipe.sink_url)
    sink.prepare(job, SCHEMA)
    written = sink.write(job, ticket_of(job, KeyRange()), SCHEMA, iter([batch]))
    sink.close()
    assert (written.rows_delivered, written.rows_rejected) == (50, 100)
    assert written.rejects[0].key == ("1",)
    assert written.rejects[0].reason == 'invalid byte sequence for encoding "UTF8": 0x00'
    assert len(texts(pipe.sink_url, "orders")) == 50


def test_a_broken_constraint_is_a_reject_too(pipe: Pipe) -> None:
    run_sql(
        pipe.sink_url,
        "CREATE TABLE k (id bigint PRIMARY KEY, n bigint CHECK (n < 10000), t text NOT NULL)",
    )
    written = pipe.run(job_of(find_table(pipe.source_url, "k"), max_rejects=5), KeyRange())
    assert {reject.key for reject in written.rejects} == {("17",), ("4000",)}
    assert "violates check constraint" in written.rejects[0].reason


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("numeric(12,2)", "numeric(12,1)"),
        ("numeric", "numeric(12,2)"),
        ("double precision", "real"),
        ("timestamp", "date"),
        ("timestamp", "timestamp(3)"),
        ("timestamp with time zone", "timestamp"),
        ("double precision", "integer"),
    ],
)
def test_a_column_that_would_round_in_silence_is_refused(
    postgres: PostgresServer, source: str, target: str
) -> None:
    pipe = Pipe(postgres.create_database("source"), postgres.create_database("sink"))
    run_sql(pipe.source_url, f"CREATE TABLE k (id int PRIMARY KEY, v {source})")
    run_sql(pipe.sink_url, f"CREATE TABLE k (id int PRIMARY KEY, v {target})")
    with pytest.raises(SinkRefused, match=r"Column v of public.k is .*change its type there"):
        pipe.run(job_of(find_table(pipe.source_url, "k")), KeyRange())


def test_wider_columns_take_everything(postgres: PostgresServer) -> None:
    pipe = Pipe(postgres.create_database("source"), postgres.create_database("sink"))
    run_sql(
        pipe.source_url,
        "CREATE TABLE k (id int PRIMARY KEY, a smallint, b real, c varchar(3), d numeric(5,1), "
        "e jsonb, f uuid, g text); "
        "INSERT INTO k VALUES (1, -1, 0.5, 'abc', 1.5, '{\"a\": 1}', "
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '2024-02-29')",
    )
    run_sql(
        pipe.sink_url,
        "CREATE TABLE k (id bigint PRIMARY KEY, a numeric, b double precision, c text, "
        "d numeric(9,3), e json, f text, g date)",
    )
    pipe.run(job_of(find_table(pipe.source_url, "k")), KeyRange())
    with psycopg.connect(pipe.sink_url) as connection:
        found = connection.execute("SELECT k::text FROM k").fetchone()
    assert found == (
        '(1,-1,0.5,abc,1.500,"{""a"": 1}",a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,2024-02-29)',
    )


def test_a_column_that_is_not_there_is_named(pipe: Pipe) -> None:
    run_sql(pipe.sink_url, "CREATE TABLE k (id bigint PRIMARY KEY)")
    with pytest.raises(SinkRefused, match="has no column n, t"):
        pipe.run(job_of(find_table(pipe.source_url, "k")), KeyRange())


def test_a_table_without_the_key_is_refused(pipe: Pipe) -> None:
    run_sql(pipe.sink_url, "CREATE TABLE k (id bigint, n bigint, t text)")
    with pytest.raises(SinkRefused, match=r"no unique key on \(id\)"):
        pipe.run(job_of(find_table(pipe.source_url, "k")), KeyRange())
