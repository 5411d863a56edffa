"""Server and worker are killed with -9 in the middle of it, three times, and started again."""

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pyarrow.parquet as pq
import pytest

from tests.acceptance.serving import Serving
from tests.waiting import until

ROWS, DAYS, PER_DAY = 200_000, 60, 200
LAST = date(2026, 6, 30)
FIRST = LAST - timedelta(days=DAYS - 1)


@pytest.fixture
def source(postgres_url: str) -> str:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE orders AS SELECT n::bigint AS id, md5(n::text) AS note,"
            " (n % 997)::numeric(12,2) / 7 AS amount"
            f" FROM generate_series(1, {ROWS}) AS n"
        )
        connection.execute("ALTER TABLE orders ADD PRIMARY KEY (id)")
        connection.execute(
            f"CREATE TABLE visits AS SELECT date '{FIRST}' + d AS day, n AS page"
            f" FROM generate_series(0, {DAYS - 1}) AS d, generate_series(1, {PER_DAY}) AS n"
        )
        connection.execute("CREATE INDEX ON visits (day)")
        connection.execute("ANALYZE")
    return postgres_url


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    server = Serving(tmp_path / "home", REFILL_LEASE_SECONDS="5", REFILL_MAX_FAILURES="30")
    server.start()
    yield server
    server.close()


def make_pipelines(serving: Serving, url: str) -> int:
    parts = urlsplit(url)
    serving.ask(
        "POST",
        "/api/postgres_databases",
        {
            "name": "shop",
            "hostname": parts.hostname,
            "port": parts.port,
            "database": parts.path.lstrip("/"),
            "username": parts.username,
            "password": parts.password,
            "ssl": False,
        },
    )
    sink = {
        "name": "orders",
        "database": "shop",
        "source": {"include_tables": ["public.orders"]},
        "destination": {"type": "files", "path": "orders", "format": "parquet"},
    }
    serving.ask("POST", "/api/sinks", sink)
    fields = {"path": "lake", "format": "parquet"}
    destination = {"type": "files", "display_name": "lake", "auth_method": "none", "fields": fields}
    made = serving.ask("POST", "/v1/teams/1/destinations", destination)
    settings = {"table": "public.visits", "date_column": "day", "destination_table": "visits"}
    transfer = {
        "display_name": "visits",
        "data_source_id": "shop",
        "destination_id": made["data"]["id"],
        "data_source_settings": [{"field_id": k, "value": v} for k, v in settings.items()],
    }
    return int(serving.ask("POST", "/v1/teams/1/transfers", transfer)["data"]["transfer_id"])


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_killed_three_times_it_completes_with_equal_counts(source: str, serving: Serving) -> None:
    transfer = make_pipelines(serving, source)
    # slow enough that every kill comes in the middle
    body = {"table": "public.orders", "max_rows_per_second": ROWS // 10}
    of_sink = serving.ask("POST", "/api/sinks/orders/backfills", body)["id"]
    span = {"range_start": str(FIRST), "range_end": str(LAST), "max_concurrent_runs": 1}
    path = f"/v1/teams/1/transfers/{transfer}/backfills"
    of_transfer = serving.ask("POST", path, span)["data"]["transfer_backfill_id"]

    def look() -> tuple[Any, Any]:
        one = serving.ask("GET", f"/api/sinks/orders/backfills/{of_sink}")
        other = serving.ask("GET", f"/v1/teams/1/backfills/{of_transfer}")["data"]
        return one, other

    def moved_since(before: float) -> Callable[[], bool]:
        return lambda: sum(each["progress"] for each in look()) > before

    kills_in_the_middle = 0
    for _ in range(3):
        before = sum(each["progress"] for each in look())
        until(moved_since(before), "some progress", 240)
        one, other = look()
        kills_in_the_middle += one["state"] != "completed" or other["status"] != "COMPLETED"
        serving.kill()
        serving.start()
    assert kills_in_the_middle == 3

    def ended() -> tuple[Any, Any] | None:
        one, other = look()
        done = one["state"] != "active" and other["status"] in ("COMPLETED", "FAILED", "CANCELLED")
        return (one, other) if done else None

    one, other = until(ended, "the end", 240)
    assert (one["state"], one["error"]) == ("completed", None)
    assert (other["status"], other["error_report"]) == ("COMPLETED", [])
    check_orders(serving, one)
    check_visits(serving, other)


def check_orders(serving: Serving, backfill: Any) -> None:
    folder = serving.files / "1" / "orders" / "public.orders"
    ids: list[int] = []
    for file in folder.glob("slice-*.parquet"):
        ids.extend(pq.ParquetFile(file).read(columns=["id"])["id"].to_pylist())
    assert len(ids) == ROWS
    assert sorted(ids) == list(range(1, ROWS + 1))
    assert backfill["rows_processed_count"] == backfill["rows_ingested_count"] == ROWS


def check_visits(serving: Serving, backfill: Any) -> None:
    folder = serving.files / "1" / "lake" / "visits"
    for offset in range(DAYS):
        file = folder / f"date={FIRST + timedelta(days=offset)}" / "data.parquet"
        assert pq.read_metadata(file).num_rows == PER_DAY
    assert backfill["transfer_runs_completed"] == DAYS
    assert backfill["rows_total"] == DAYS * PER_DAY
