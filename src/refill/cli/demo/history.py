"""The history that the demo backfills: a table of orders, and a year of visits by date."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

import psycopg

_ORDERS = """
CREATE TABLE orders (
  id bigint PRIMARY KEY,
  customer_id bigint NOT NULL,
  status text NOT NULL,
  email text,
  amount numeric(12,2) NOT NULL,
  items integer NOT NULL,
  attributes jsonb,
  ordered_at timestamptz NOT NULL,
  shipped_at timestamp,
  due_on date,
  reference uuid NOT NULL
)"""

_FILL_ORDERS = """
INSERT INTO orders
SELECT n, n %% 50021,
       (ARRAY['new', 'paid', 'packed', 'shipped', 'returned'])[1 + n %% 5],
       CASE WHEN n %% 17 <> 0 THEN 'customer' || n %% 50021 || '@example.com' END,
       (n * 7919 %% 1000000) / 100.0, 1 + n %% 9,
       jsonb_build_object('channel', (ARRAY['web', 'store', 'app'])[1 + n %% 3],
                          'coupon', n %% 11 = 0),
       timestamptz '2025-01-01 00:00:00+00' + n * interval '31 seconds',
       CASE WHEN n %% 5 > 2 THEN timestamp '2025-01-02' + n * interval '31 seconds' END,
       date '2025-01-08' + (n %% 365)::int,
       md5(n::text)::uuid
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n"""

_VISITS = """
CREATE TABLE visits (
  visited_on date NOT NULL,
  page text NOT NULL,
  country char(2) NOT NULL,
  visitors integer NOT NULL,
  revenue numeric(10,2) NOT NULL
)"""

_FILL_VISITS = """
INSERT INTO visits
SELECT %(first)s::date + day, '/page/' || n, (ARRAY['fi', 'de', 'us', 'jp', 'br'])[1 + n %% 5],
       (day * 31 + n * 17) %% 900, ((day * 131 + n * 7) %% 100000) / 100.0
FROM generate_series(0, %(days)s - 1) AS day, generate_series(1, %(per_day)s) AS n"""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What there is to move, counted at the source."""

    orders: int
    orders_amount: str
    visits: int
    visits_per_date: Mapping[date, int]
    first_date: date
    last_date: date


def write_history(url: str, *, rows: int, days: int, per_day: int, today: date) -> History:
    """Makes the tables, unless they are there as wanted from the last time."""
    last = today - timedelta(days=1)
    first = last - timedelta(days=days - 1)
    with psycopg.connect(url, autocommit=True) as connection:
        if not _is_written(connection, rows, days * per_day, first, last):
            connection.execute("DROP TABLE IF EXISTS orders, visits")
            connection.execute(_ORDERS)
            connection.execute(_FILL_ORDERS, {"first": 1, "last": rows})
            connection.execute(_VISITS)
            connection.execute(_FILL_VISITS, {"first": first, "days": days, "per_day": per_day})
            connection.execute("CREATE INDEX ON visits (visited_on)")
            connection.execute("ANALYZE orders, visits")
        return _count(connection, first, last)


def _is_written(
    connection: psycopg.Connection, rows: int, visits: int, first: date, last: date
) -> bool:
    there = connection.execute("SELECT to_regclass('orders'), to_regclass('visits')").fetchone()
    if there is None or None in there:
        return False
    found = connection.execute(
        "SELECT (SELECT count(*) FROM orders), count(*), min(visited_on), max(visited_on)"
        " FROM visits"
    ).fetchone()
    return found == (rows, visits, first, last)


def _count(connection: psycopg.Connection, first: date, last: date) -> History:
    counted = connection.execute("SELECT count(*), sum(amount)::text FROM orders").fetchone()
    dates = connection.execute("SELECT visited_on, count(*) FROM visits GROUP BY 1").fetchall()
    assert counted is not None
    per_date = {day: int(count) for day, count in dates}
    return History(
        orders=counted[0],
        orders_amount=counted[1],
        visits=sum(per_date.values()),
        visits_per_date=per_date,
        first_date=first,
        last_date=last,
    )
