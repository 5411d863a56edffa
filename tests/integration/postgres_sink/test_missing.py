"""A table that was made anew in the middle holds nothing of what was written before."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from refill.connectors.kit.contract import Job
from refill.connectors.postgres.receipts import RECEIPTS
from refill.domain.slice import Dated, Extent, KeyRange, Slice
from refill.domain.table import Table
from tests.contract.sinks.bed import FIRST_DAY, ORDERS, SCHEMA, batch_of
from tests.integration.postgres_sink.pipe import job_of, open_sink, ticket_of, transfer_of

AT = datetime(2024, 1, 1, tzinfo=UTC)
KEYLESS = ORDERS.model_copy(update={"primary_key": ()})
ANEW = "ALTER TABLE orders RENAME TO old; CREATE TABLE orders (LIKE old INCLUDING ALL)"


def run(url: str, sql: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql)


def count(url: str) -> int:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT count(*) FROM orders").fetchone()
    assert found is not None
    return int(found[0])


def key_range(index: int) -> Extent:
    return KeyRange(lower=(str(1000 * index),), upper=(str(1000 * (index + 1)),))


def day(index: int) -> Extent:
    return Dated(date=FIRST_DAY + timedelta(days=index))


def deliver(url: str, job: Job, extent: Extent, index: int, attempt: int = 1) -> Slice:
    sink = open_sink(url)
    ticket = ticket_of(job, extent, index=index, attempt=attempt)
    sink.prepare(job, SCHEMA)
    sink.write(job, ticket, SCHEMA, iter([batch_of(index, 3, "a")]))
    sink.close()
    return Slice(
        id=index,
        backfill_id=job.backfill_id,
        index=index,
        extent=extent,
        target=ticket.target,
        queued_at=AT,
    )


def missing(url: str, job: Job, slices: list[Slice]) -> list[int]:
    sink = open_sink(url)
    found = sink.missing(job, slices)
    sink.close()
    return [part.index for part in found]


@pytest.mark.parametrize("table", [ORDERS, KEYLESS], ids=["keyed", "keyless"])
def test_slices_of_a_table_that_was_made_anew_are_missed_and_written_again(
    postgres_url: str, table: Table
) -> None:
    job = job_of(table)
    before = [deliver(postgres_url, job, key_range(index), index) for index in range(2)]
    assert missing(postgres_url, job, before) == []
    run(postgres_url, ANEW)
    slices = [*before, deliver(postgres_url, job, key_range(2), 2)]
    assert missing(postgres_url, job, slices) == [0, 1]
    for index in (0, 1):
        deliver(postgres_url, job, key_range(index), index, attempt=2)
    assert missing(postgres_url, job, slices) == []
    assert count(postgres_url) == 9


def test_dates_of_a_table_that_was_made_anew_are_missed(postgres_url: str) -> None:
    job = transfer_of(ORDERS)
    slices = [deliver(postgres_url, job, day(index), index) for index in range(2)]
    run(postgres_url, ANEW)
    slices.append(deliver(postgres_url, job, day(2), 2))
    assert missing(postgres_url, job, slices) == [0, 1]


@pytest.mark.parametrize("gone", ["orders", f'orders, "{RECEIPTS}"'])
def test_all_slices_of_a_table_that_is_gone_are_missed(postgres_url: str, gone: str) -> None:
    job = job_of(ORDERS)
    slices = [deliver(postgres_url, job, key_range(index), index) for index in range(2)]
    run(postgres_url, f"DROP TABLE {gone}")
    assert missing(postgres_url, job, slices) == [0, 1]


def test_a_date_that_a_later_run_replaced_is_there(postgres_url: str) -> None:
    job, later = transfer_of(ORDERS), transfer_of(ORDERS, backfill_id=2)
    part = deliver(postgres_url, job, day(0), 0)
    sink = open_sink(postgres_url)
    sink.write(later, ticket_of(later, day(0), fence=2), SCHEMA, iter([batch_of(0, 1, "b")]))
    sink.close()
    assert missing(postgres_url, job, [part]) == []


def test_receipts_of_an_older_version_stand(postgres_url: str) -> None:
    job = job_of(ORDERS)
    part = deliver(postgres_url, job, key_range(0), 0)
    run(postgres_url, f'ALTER TABLE "{RECEIPTS}" DROP COLUMN table_id')
    again = deliver(postgres_url, job, key_range(1), 1)
    assert missing(postgres_url, job, [part, again]) == []
