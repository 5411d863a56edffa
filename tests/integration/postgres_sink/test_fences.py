"""Who may write, when several want to: slices of one backfill together, of two never."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from refill.connectors.postgres import sink_session
from refill.connectors.postgres.receipts import RECEIPTS, Claim
from refill.connectors.postgres.sink_session import SinkSession
from refill.domain.errors import Superseded
from refill.domain.slice import KeyRange
from tests.contract.sinks.bed import ORDERS, SCHEMA, batch_of
from tests.integration.postgres_sink.pipe import job_of, open_sink, ticket_of


def ids(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute("SELECT id FROM orders ORDER BY id")]


def test_slices_of_one_backfill_are_written_at_the_same_time(postgres_url: str) -> None:
    job, met = job_of(ORDERS), threading.Barrier(2)
    prepared = open_sink(postgres_url)
    prepared.prepare(job, SCHEMA)
    prepared.close()

    def write(index: int) -> None:
        def batches() -> Iterator[pa.RecordBatch]:
            yield batch_of(index, 2, "a")
            met.wait(timeout=30)  # both are in the middle of their transaction
            yield batch_of(index, 2, "a", first=3)

        sink = open_sink(postgres_url)
        extent = KeyRange(lower=(str(1000 * index),), upper=(str(1000 * (index + 1)),))
        sink.write(job, ticket_of(job, extent, index=index), SCHEMA, batches())
        sink.close()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(write, range(2)))
    assert ids(postgres_url) == [1, 2, 3, 4, 1001, 1002, 1003, 1004]


def test_two_first_slices_do_not_wait_for_each_other(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second looked before the first had taken the table, and asks when it has."""
    job = job_of(ORDERS)
    first, second = open_sink(postgres_url), open_sink(postgres_url)
    first.prepare(job, SCHEMA)
    really = Claim._is_raised
    looks: list[bool] = []

    def late(claim: Claim, session: SinkSession) -> bool:
        looks.append(really(claim, session))
        return looks[-1] and len(looks) > 1

    def batches() -> Iterator[pa.RecordBatch]:
        yield batch_of(0, 2, "a")
        monkeypatch.setattr(Claim, "_is_raised", late)
        extent = KeyRange(lower=("1000",), upper=("2000",))
        written = second.write(
            job, ticket_of(job, extent, index=1), SCHEMA, iter([batch_of(1, 2, "a")])
        )
        assert written.rows_delivered == 2
        yield batch_of(0, 2, "a", first=3)

    extent = KeyRange(lower=("0",), upper=("1000",))
    assert first.write(job, ticket_of(job, extent), SCHEMA, batches()).rows_delivered == 4
    assert looks == [True, True]
    first.close()
    second.close()


def test_a_later_backfill_ends_every_slice_of_an_earlier_one(postgres_url: str) -> None:
    earlier, later = job_of(ORDERS, backfill_id=1), job_of(ORDERS, backfill_id=2)
    zombie, sink = open_sink(postgres_url), open_sink(postgres_url)
    zombie.prepare(earlier, SCHEMA)

    def overtaken() -> Iterator[pa.RecordBatch]:
        yield batch_of(0, 2, "old")
        # not even the same slice: the whole table has passed to the later backfill
        ticket = ticket_of(later, KeyRange(lower=("1000",)), fence=2, index=1)
        sink.write(later, ticket, SCHEMA, iter([batch_of(1, 2, "new")]))
        yield batch_of(0, 2, "old", first=3)

    with pytest.raises(Superseded):
        zombie.write(earlier, ticket_of(earlier, KeyRange(upper=("1000",))), SCHEMA, overtaken())
    assert ids(postgres_url) == [1001, 1002]
    zombie.close()
    sink.close()


def test_receipts_of_an_earlier_backfill_go_with_its_fence(postgres_url: str) -> None:
    sink = open_sink(postgres_url)
    for backfill_id in (1, 2):
        job = job_of(ORDERS, backfill_id=backfill_id)
        sink.prepare(job, SCHEMA)
        for index in range(3):
            extent = KeyRange(lower=(str(1000 * index),), upper=(str(1000 * (index + 1)),))
            ticket = ticket_of(job, extent, fence=backfill_id, index=index)
            sink.write(job, ticket, SCHEMA, iter([batch_of(index, 1, "a")]))
    sink.close()
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute(f"SELECT DISTINCT fence, count(*) FROM {RECEIPTS} GROUP BY 1")
        # one per slice, and one for the table
        assert found.fetchall() == [(2, 4)]


def test_a_session_that_was_ended_while_it_lay_idle_is_replaced(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink_session, "_TRUSTED_SECONDS", 0.0)
    job, sink = job_of(ORDERS), open_sink(postgres_url)
    sink.prepare(job, SCHEMA)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    assert ended == [(True,)]
    sink.write(job, ticket_of(job, KeyRange()), SCHEMA, iter([batch_of(0, 2, "a")]))
    sink.close()
    assert ids(postgres_url) == [1, 2]


def test_a_session_at_rest_holds_no_transaction(postgres_url: str) -> None:
    job, sink = job_of(ORDERS), open_sink(postgres_url)
    sink.prepare(job, SCHEMA)
    sink.write(job, ticket_of(job, KeyRange()), SCHEMA, iter([batch_of(0, 2, "a")]))
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        states: list[Any] = connection.execute(
            "SELECT state FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    assert states == [("idle",)]
    sink.close()
