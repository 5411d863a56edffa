"""python -m benchmarks [--rows N] [--passes N] [--only PART]

PART is parquet, jsonl, postgres, kafka, dates, growth or api, and may be given several times.

Everything in one run, interleaved: pass 1 of each contender, pass 2 of each, … after a warm-up.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from benchmarks import api, kafka, report
from benchmarks.measure import Pass, timed, watching_memory
from benchmarks.peers import (
    Bench,
    bare_adbc,
    copy_pipes,
    copy_streams,
    dlt_connectorx,
    duckdb_scanner,
    spark_script,
)
from benchmarks.refill_server import RefillServer, postgres_fields, refill_server
from benchmarks.source import benchmark_server, make_dates, make_table
from benchmarks.spark_jdbc import driver_jar

LIMIT = "two COPY streams to nowhere"
BARE = "bare ADBC → pyarrow Parquet"
PARQUET = "refill → Parquet"
JSONL = "refill → JSON lines"
POSTGRES = "refill → PostgreSQL"
PIPES = "COPY | COPY, two streams"
JDBC = "PySpark JDBC → Parquet"
JDBC_JSON = "PySpark JDBC → to_json"
DLT = "dlt, ConnectorX → Parquet"
DUCKDB = "DuckDB scanner → Parquet"

BARS = [
    (PARQUET, LIMIT, 0.33, 0.5),
    (PARQUET, BARE, 0.85, 1.0),
    (PARQUET, JDBC, 1.5, 2.5),
    (PARQUET, DLT, 1.15, 2.0),
    (PARQUET, DUCKDB, 0.5, 1.0),
    (POSTGRES, PIPES, 0.5, 0.8),
]

PARTS = ("parquet", "jsonl", "postgres", "kafka", "dates", "growth", "api")

Contender = Callable[[], "int | Pass"]
console = Console()


def main() -> int:
    arguments = _arguments()
    with (
        tempfile.TemporaryDirectory(prefix="refill-bench-") as scratch,
        benchmark_server() as server,
    ):
        url = server.create_database("bench")
        bench = Bench(server, url, arguments.rows, Path(scratch))
        with refill_server(Path(scratch)) as refill:
            refill.add_database("bench", url)
            met = True
            only = set(arguments.only or PARTS)
            if only & {"parquet", "jsonl", "postgres"}:
                met &= _rates(bench, refill, only, arguments.passes, peers=not arguments.no_peers)
            if "kafka" in only:
                make_table(url, arguments.rows)
                met &= _kafka(bench, refill, arguments)
            if "dates" in only:
                met &= _dates(bench, refill)
            if "growth" in only:
                met &= _growth(bench, refill, [int(rows) for rows in arguments.growth.split(",")])
            if "api" in only:
                met &= api.run(bench, refill)
    return 0 if met else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--only", action="append", choices=PARTS, help="may be given several times")
    parser.add_argument("--no-peers", action="store_true", help="only refill, its limit and parts")
    parser.add_argument("--growth", default="1000000,3000000,10000000,30000000")
    return parser.parse_args()


def _rates(bench: Bench, refill: RefillServer, only: set[str], passes: int, *, peers: bool) -> bool:
    console.print(f"making {bench.rows:,} rows …")
    make_table(bench.url, bench.rows)
    contenders = _contenders(bench, refill, only, peers=peers)
    results: dict[str, list[Pass]] = {name: [] for name in contenders}
    for number in range(passes + 1):
        for name, run in list(contenders.items()):
            try:
                one = timed(run)
            except Exception as exc:  # a peer that is not here must not end the run
                if name.startswith("refill"):
                    raise
                console.print(f"[yellow]left out: {name}: {exc}")
                del contenders[name], results[name]
                continue
            if one.rows != bench.rows:
                raise RuntimeError(f"{name} moved {one.rows} rows of {bench.rows}")
            label = f"pass {number}" if number else "warm-up"
            console.print(f"{label}: {name}: {one.rate:,.0f} rows/s, CPU {one.cpu_seconds:.1f} s")
            if number:
                results[name].append(one)
    report.show_rates(results, LIMIT)
    ratios = [
        (f"{ours} : {other}", report.ratio(results, ours, other), must, aim)
        for ours, other, must, aim in BARS
        if ours in results and other in results
    ]
    met = report.show_bars(ratios)
    report.save("rates", results, rows=bench.rows, ratios=ratios)
    title = f"PostgreSQL, {bench.rows:,} rows, {os.cpu_count()} cores"
    report.draw_rates(results, report.IMAGES / "bench-rates.png", title)
    return met


def _kafka(bench: Bench, refill: RefillServer, arguments: argparse.Namespace) -> bool:
    try:
        return kafka.run(bench, refill, arguments.passes, peers=not arguments.no_peers)
    except kafka.NotHere as exc:
        if arguments.only:
            raise SystemExit(str(exc)) from None
        console.print(f"[yellow]left out: {exc}")
        return True


def _contenders(
    bench: Bench, refill: RefillServer, only: set[str], *, peers: bool
) -> dict[str, Contender]:
    found: dict[str, Contender] = {LIMIT: lambda: copy_streams(bench)}
    if "parquet" in only:
        refill.add_sink(
            "parquet", "orders", {"type": "files", "path": "parquet", "format": "parquet"}
        )
        found[BARE] = lambda: bare_adbc(bench)
        found[PARQUET] = lambda: int(refill.backfill("parquet")["rows_ingested_count"])
        if peers:
            found[DLT] = lambda: dlt_connectorx(bench)
            found[DUCKDB] = lambda: duckdb_scanner(bench)
            if driver_jar():
                found[JDBC] = lambda: spark_script("parquet")(bench)
            else:
                console.print(f"[yellow]left out: {JDBC}: it needs the JDBC driver's jar, or Maven")
    if "jsonl" in only:
        refill.add_sink("jsonl", "orders", {"type": "files", "path": "jsonl", "format": "jsonl"})
        found[JSONL] = lambda: int(refill.backfill("jsonl")["rows_ingested_count"])
        if peers and driver_jar():
            found[JDBC_JSON] = lambda: spark_script("json")(bench)
    if "postgres" in only:
        target = bench.server.create_database("target")
        destination = {"type": "postgres", "table": "public.orders_copy", **postgres_fields(target)}
        refill.add_sink("postgres", "orders", destination)
        found[PIPES] = lambda: copy_pipes(bench)
        found[POSTGRES] = lambda: _fresh_copy(refill, target)
    return found


def _fresh_copy(refill: RefillServer, target: str) -> int:
    """Into an absent table, as the pipes go into a fresh one."""
    import psycopg

    with psycopg.connect(target, autocommit=True) as connection:
        connection.execute("drop table if exists public.orders_copy")
    return int(refill.backfill("postgres")["rows_ingested_count"])


def _dates(bench: Bench, refill: RefillServer, dates: int = 3650, rows_per_date: int = 200) -> bool:
    results: dict[str, list[Pass]] = {}
    destination = refill.call(
        "POST",
        "/v1/teams/1/destinations",
        type="files",
        display_name="dates",
        auth_method="none",
        fields={"path": "dates", "format": "parquet"},
    )["data"]["id"]
    for indexed in (True, False):
        table = "dated_indexed" if indexed else "dated_plain"
        make_dates(bench.url, table, dates, rows_per_date, indexed=indexed)
        refill.call("POST", "/api/postgres_databases/bench/refresh_tables")
        settings = {"table": f"public.{table}", "date_column": "day", "destination_table": table}
        transfer = refill.call(
            "POST",
            "/v1/teams/1/transfers",
            display_name=table,
            data_source_id="bench",
            destination_id=destination,
            schedule=[],
            data_source_settings=[
                {"field_id": field, "value": value} for field, value in settings.items()
            ],
        )["data"]["transfer_id"]
        refill.backfill_dates(transfer, "2023-12-01", "2023-12-31")
        name = f"{dates} dates of {rows_per_date} rows, {'an' if indexed else 'no'} index"
        first = f"{2023 - dates // 365 + 1}-01-03"
        results[name] = []
        for _ in range(2):
            one = timed(
                lambda transfer=transfer, first=first: int(  # type: ignore[misc]
                    refill.backfill_dates(transfer, first, "2023-12-31")["transfer_runs_completed"]
                )
            )
            console.print(
                f"{name}: {one.seconds / one.rows * 1000:.1f} ms a date, {one.rows} dates"
            )
            results[name].append(one)
    worst = {n: min(p.seconds / p.rows * 1000 for p in passes) for n, passes in results.items()}
    indexed_ms = next(iter(worst.values()))
    met = report.show_bars(
        [("15 ms a date : measured, date indexed", 15 / indexed_ms, 1.0, 15 / 8)]
    )
    report.save("dates", results, milliseconds_per_date=worst)
    return met


def _growth(bench: Bench, refill: RefillServer, sizes: list[int]) -> bool:
    # a table of its own: the others' has more rows than the first size already
    make_table(bench.url, sizes[0], "grown")
    refill.add_sink("growth", "grown", {"type": "files", "path": "growth", "format": "parquet"})
    points: list[dict[str, float]] = []
    for rows in sizes:
        make_table(bench.url, rows, "grown")
        if not points:
            refill.backfill("growth")
        with watching_memory(refill.pid) as memory:
            one = timed(lambda: int(refill.backfill("growth")["rows_ingested_count"]))
        if one.rows != rows:
            raise RuntimeError(f"refill moved {one.rows} rows of {rows}")
        points.append(
            {
                "rows": rows,
                "seconds": one.seconds,
                "microseconds_per_row": one.seconds / rows * 1e6,
                "peak_bytes": memory.peak_bytes,
            }
        )
        console.print(
            f"{rows:,} rows: {points[-1]['microseconds_per_row']:.2f} µs a row, "
            f"peak {memory.peak_bytes / 1e9:.2f} GB {memory.parts}"
        )
    first, last = points[0], points[-1]
    met = report.show_bars(
        [
            (
                f"cost per row at {sizes[0]:,} : at {sizes[-1]:,}",
                first["microseconds_per_row"] / last["microseconds_per_row"],
                1 / 1.1,
                1.0,
            ),
            ("memory, first : last", first["peak_bytes"] / last["peak_bytes"], 1 / 1.1, 1.0),
            ("2.5 GB : peak memory", 2.5e9 / last["peak_bytes"], 1.0, 2.5 / 1.5),
        ]
    )
    report.save("growth", {}, points=points)
    report.draw_growth(points, report.IMAGES / "bench-growth.png")
    return met


if __name__ == "__main__":
    sys.exit(main())
