"""The table that everything is measured on, in a PostgreSQL of the benchmark's own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.servers.postgres import PostgresServer, running_postgres

CACHE = Path(__file__).parent.parent / ".cache"

COLUMNS = """
  id bigint primary key, customer_id bigint not null, status text not null, note text not null,
  amount numeric(12,2) not null, quantity int not null, payload jsonb not null,
  created_at timestamptz not null, local_at timestamp not null, day date not null,
  token uuid not null
"""

FILL = """
insert into {table}
select n, n % 100003, (array['new','paid','sent','done'])[1 + n % 4],
       'note ' || md5(n::text), (n % 1000000) / 100.0, n % 17,
       jsonb_build_object('n', n, 'tags', jsonb_build_array('a', n % 7), 'ok', n % 2 = 0),
       timestamptz '2020-01-01 00:00+00' + n * interval '7 seconds',
       timestamp '2020-01-01 00:00' + n * interval '11 seconds',
       date '2020-01-01' + (n % 1500)::int, md5('t' || n)::uuid
from generate_series({first}::bigint, {last}::bigint) n
"""


@contextmanager
def benchmark_server() -> Iterator[PostgresServer]:
    """With settings of a machine that is used, not of a test: durable, parallel query off the way
    of the streams that are measured."""
    settings = {
        "fsync": "on",
        "full_page_writes": "on",
        "shared_buffers": "2GB",
        "max_wal_size": "16GB",
        "checkpoint_timeout": "30min",
        "jit": "off",
        "wal_level": "logical",  # Debezium asks for it even to take a snapshot
        "max_replication_slots": "20",
    }
    with running_postgres(**settings) as server:
        yield server


def make_table(url: str, rows: int, table: str = "orders") -> None:
    """Makes the table once, or lengthens it, so that growing costs only what is new."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"create table if not exists {table} ({COLUMNS})")
        found = connection.execute(f"select coalesce(max(id), 0) from {table}").fetchone()
        assert found is not None
        step = 1_000_000
        for first in range(int(found[0]) + 1, rows + 1, step):
            last = min(first + step - 1, rows)
            connection.execute(FILL.format(table=table, first=first, last=last))
        connection.execute(f"vacuum (analyze) {table}")
        connection.execute("checkpoint")


def make_dates(url: str, table: str, dates: int, rows_per_date: int, *, indexed: bool) -> None:
    """A table of many small dates that ends the day before 2024."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"drop table if exists {table}")
        connection.execute(
            f"create table {table} (id bigint primary key, day date not null, "
            "amount numeric(12,2) not null, label text not null)"
        )
        connection.execute(
            f"insert into {table} select n, date '2023-12-31' - (n / {rows_per_date})::int, "
            f"n / 100.0, 'label ' || n from generate_series(0, {dates * rows_per_date - 1}) n"
        )
        if indexed:
            connection.execute(f"create index on {table} (day)")
        connection.execute(f"vacuum (analyze) {table}")
