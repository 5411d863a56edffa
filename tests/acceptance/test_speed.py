"""A regression in speed shows here: ratios and counts within one run, never bare rates."""

import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.measure import timed
from benchmarks.peers import Bench, copy_streams
from benchmarks.refill_server import RefillServer, refill_server
from benchmarks.source import make_dates, make_table
from tests.servers.postgres import PostgresServer

ROWS = 500_000
DATES, ROWS_PER_DATE = 365, 1000


@dataclass(frozen=True)
class Stage:
    bench: Bench
    refill: RefillServer


@pytest.fixture(scope="module")
def stage(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    url = postgres.create_database("speed")
    make_table(url, ROWS)
    make_dates(url, "dated", DATES, ROWS_PER_DATE, indexed=True)
    scratch = tmp_path_factory.mktemp("speed")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SPARK_SUBMIT_OPTS", raising=False)  # as a user starts it
        stack = ExitStack()
        refill = stack.enter_context(refill_server(scratch))
    with stack:
        refill.add_database("bench", url)
        refill.add_sink("parquet", "orders", {"type": "files", "path": "p", "format": "parquet"})
        refill.backfill("parquet")  # the first pass in a fresh Spark is no measure
        yield Stage(Bench(postgres, url, ROWS, Path(scratch)), refill)


@pytest.mark.timeout(300)
def test_a_table_goes_to_parquet_at_a_fair_part_of_what_the_database_can_give(
    stage: Stage,
) -> None:
    ratios = []
    for _ in range(3):
        limit = timed(lambda: copy_streams(stage.bench))
        ours = timed(lambda: int(stage.refill.backfill("parquet")["rows_ingested_count"]))
        assert ours.rows == ROWS
        ratios.append(ours.rate / limit.rate)
    assert statistics.median(ratios) >= 0.15, ratios


@pytest.mark.timeout(300)
def test_a_year_of_small_dates_takes_less_than_half_a_minute(stage: Stage) -> None:
    refill = stage.refill
    destination = refill.call(
        "POST",
        "/v1/teams/1/destinations",
        type="files",
        display_name="dates",
        auth_method="none",
        fields={"path": "dates", "format": "parquet"},
    )["data"]["id"]
    settings = {"table": "public.dated", "date_column": "day", "destination_table": "dated"}
    transfer = refill.call(
        "POST",
        "/v1/teams/1/transfers",
        display_name="dated",
        data_source_id="bench",
        destination_id=destination,
        schedule=[],
        data_source_settings=[
            {"field_id": field, "value": value} for field, value in settings.items()
        ],
    )["data"]["transfer_id"]
    began = time.perf_counter()
    done = refill.backfill_dates(transfer, "2023-01-01", "2023-12-31")
    seconds = time.perf_counter() - began
    assert done["transfer_runs_completed"] == DATES
    assert done["rows_total"] == DATES * ROWS_PER_DATE
    assert seconds < 30


@pytest.mark.timeout(120)
def test_the_first_slice_begins_within_a_second_of_its_creation(stage: Stage) -> None:
    waits = []
    for _ in range(3):
        began = time.perf_counter()
        made = stage.refill.call("POST", "/api/sinks/parquet/backfills")
        path = f"/api/sinks/parquet/backfills/{made['id']}"
        while True:
            found = stage.refill.call("GET", path)
            if found["slices"]["running"] or found["slices"]["completed"]:
                break
            assert time.perf_counter() - began < 30, found
        waits.append(time.perf_counter() - began)
        while found["state"] != "completed":
            found = stage.refill.call("GET", path)
    assert min(waits) < 1.0, waits
