"""A source lies about its types, names and values: none of it becomes SQL at the destination."""

import psycopg
import pytest

from refill.connectors.postgres.quoting import literal
from refill.connectors.postgres.type_names import type_sql
from refill.domain.errors import Invalid, SinkRefused
from refill.domain.slice import KeyRange
from tests.integration.postgres_sink.pipe import Pipe, find_table, job_of
from tests.integration.postgres_sink.test_identity import run_sql, texts
from tests.servers.postgres import PostgresServer

LIES = (
    "text); CREATE TABLE stolen (); --",
    "text DEFAULT (SELECT 'x')",
    "text DEFAULT pg_sleep(60)",
    "text CHECK (pg_sleep(60) IS NULL)",
    'text COLLATE "C"); CREATE TABLE stolen (',
    "integer PRIMARY KEY, stolen text",
    "text(pg_sleep(60))",
    "text('a')",
    "pg_authid.rolpassword%TYPE",
    "setof text",
    "serial",
    "text /* */",
    'text"',
    '"text',
    "a.b.c",
    "text\n",
    "",
)


@pytest.fixture
def pipe(postgres: PostgresServer) -> Pipe:
    made = Pipe(postgres.create_database("source"), postgres.create_database("sink"))
    run_sql(
        made.source_url, "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1)"
    )
    return made


def tables(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        return {name for (name,) in found}


@pytest.mark.parametrize("lie", LIES)
def test_no_text_but_a_type_is_a_type(lie: str) -> None:
    with pytest.raises(Invalid):
        type_sql(lie)


@pytest.mark.parametrize("lie", LIES[:3])
def test_a_source_that_lies_about_a_type_runs_nothing_at_the_destination(
    pipe: Pipe, lie: str
) -> None:
    """Its owner may replace the very function that prints types."""
    run_sql(
        pipe.source_url,
        "CREATE OR REPLACE FUNCTION pg_catalog.format_type(oid, integer) RETURNS text "
        f"LANGUAGE sql STABLE AS $$ SELECT {literal(lie)} $$",
    )
    table = find_table(pipe.source_url, "t")
    assert {column.type for column in table.columns} == {lie}
    with pytest.raises(SinkRefused, match="is not the name of a type"):
        pipe.run(job_of(table), KeyRange())
    assert tables(pipe.sink_url) == set()


def test_types_with_odd_names_still_arrive(pipe: Pipe) -> None:
    odd = """CREATE SCHEMA "a "" b"; CREATE TYPE "a "" b"."mood); --" AS ENUM ('it''s', 'b\\');"""
    run_sql(pipe.sink_url, odd)
    run_sql(
        pipe.source_url,
        odd
        + """CREATE TABLE odd (id "a "" b"."mood); --" PRIMARY KEY, "x"") --" timestamp(3)[],
        n numeric(5,-2), i interval day to second(3), c "char", z time(2) with time zone,
        b bit varying(5), f double precision); INSERT INTO odd (id) VALUES ('it''s'), ('b\\')""",
    )
    job = job_of(find_table(pipe.source_url, "odd"))
    pipe.run(job, KeyRange())
    pipe.run(job, KeyRange(), attempt=2)
    assert texts(pipe.sink_url, "odd") == texts(pipe.source_url, "odd")


@pytest.mark.parametrize("conforming", ["on", "off"])
@pytest.mark.parametrize("value", ["\\", "\\'; SELECT 1/0; --", "it's", "\\\\''", "\\x41"])
def test_a_literal_is_its_value_whatever_the_session_thinks_of_backslashes(
    postgres_url: str, value: str, conforming: str
) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute(f"SET standard_conforming_strings = {conforming}")
        connection.execute("SET escape_string_warning = off")
        assert connection.execute(f"SELECT {literal(value)}::text").fetchone() == (value,)  # type: ignore[arg-type]
