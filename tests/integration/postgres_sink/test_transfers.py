"""A destination: each date is replaced whole, in one transaction."""

from datetime import date

import psycopg
import pytest

from refill.connectors.postgres.ddl import DATE_COLUMN
from refill.domain.errors import Superseded
from refill.domain.slice import Dated
from tests.integration.postgres_sink.pipe import Pipe, find_table, transfer_of
from tests.integration.postgres_sink.test_identity import run_sql, texts
from tests.servers.postgres import PostgresServer

FIRST, SECOND = Dated(date=date(2024, 2, 28)), Dated(date=date(2024, 2, 29))


@pytest.fixture
def pipe(postgres: PostgresServer) -> Pipe:
    made = Pipe(postgres.create_database("source"), postgres.create_database("sink"))
    run_sql(
        made.source_url,
        "CREATE TABLE events (id bigint PRIMARY KEY, day date, at timestamptz, t text);"
        "INSERT INTO events SELECT i, date '2024-02-28' + i % 2, "
        "timestamptz '2024-02-28 12:00+00' + i % 2 * interval '1 day', 't' || i "
        "FROM generate_series(1, 10) i",
    )
    return made


def test_a_date_is_replaced_and_its_neighbour_left_alone(pipe: Pipe) -> None:
    job = transfer_of(find_table(pipe.source_url, "events"))
    pipe.run(job, FIRST)
    pipe.run(job, SECOND)
    assert texts(pipe.sink_url, "events") == texts(pipe.source_url, "events")
    run_sql(pipe.source_url, "DELETE FROM events WHERE id = 2; UPDATE events SET t = 'new'")
    written = pipe.run(job, FIRST, attempt=2)
    assert written.rows_delivered == 4
    by_id = {row[0]: row[3] for row in texts(pipe.sink_url, "events")}
    assert by_id == {str(i): "new" if i % 2 == 0 else f"t{i}" for i in range(1, 11) if i != 2}


def test_a_date_that_became_empty_ends_empty(pipe: Pipe) -> None:
    job = transfer_of(find_table(pipe.source_url, "events"))
    pipe.run(job, FIRST)
    run_sql(pipe.source_url, "DELETE FROM events WHERE day = '2024-02-28'")
    assert pipe.run(job, FIRST, attempt=2).rows_delivered == 0
    assert texts(pipe.sink_url, "events") == []


def test_a_row_that_moved_to_another_date_is_there_once(pipe: Pipe) -> None:
    job = transfer_of(find_table(pipe.source_url, "events"))
    pipe.run(job, FIRST)
    pipe.run(job, SECOND)
    run_sql(pipe.source_url, "UPDATE events SET day = '2024-02-29' WHERE id = 2")
    pipe.run(job, SECOND, attempt=2)
    assert texts(pipe.sink_url, "events") == texts(pipe.source_url, "events")


def test_a_date_that_is_an_instant_gets_a_column_of_its_own(pipe: Pipe) -> None:
    job = transfer_of(find_table(pipe.source_url, "events"), date_column="at")
    pipe.run(job, FIRST)
    pipe.run(job, FIRST, attempt=2)
    with psycopg.connect(pipe.sink_url) as connection:
        found = connection.execute(f"SELECT DISTINCT {DATE_COLUMN}::text FROM events").fetchall()
    assert found == [("2024-02-28",)]
    assert len(texts(pipe.sink_url, "events")) == 5


def test_the_schema_of_the_destination_is_used(pipe: Pipe) -> None:
    job = transfer_of(find_table(pipe.source_url, "events"), destination_table="daily")
    pipe.run(job, FIRST, schema="warehouse")
    assert len(texts(pipe.sink_url, "warehouse.daily")) == 5


def test_readers_never_see_a_date_half_replaced(pipe: Pipe) -> None:
    job = transfer_of(find_table(pipe.source_url, "events"))
    pipe.run(job, FIRST)
    with psycopg.connect(pipe.sink_url) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        assert reader.execute("SELECT count(*) FROM events").fetchone() == (5,)
        pipe.run(job, FIRST, attempt=2)
        assert reader.execute("SELECT count(*) FROM events").fetchone() == (5,)


def test_a_store_made_anew_is_not_held_back_by_old_receipts(pipe: Pipe) -> None:
    table = find_table(pipe.source_url, "events")
    pipe.run(transfer_of(table), FIRST, attempt=3, fence=9)
    with pytest.raises(Superseded):
        pipe.run(transfer_of(table), FIRST, attempt=1, fence=1)
    anew = transfer_of(table, database_id="99999999-9999-4999-8999-999999999999")
    assert pipe.run(anew, FIRST, attempt=1, fence=1).rows_delivered == 5
