"""The limit, the parts alone, and what people use today."""

import json
import multiprocessing
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from multiprocessing.pool import Pool
from pathlib import Path

import psycopg

from benchmarks.measure import Pass
from tests.servers.postgres import PostgresServer

EXACT_SELECT = (
    "select id, customer_id, status, note, amount, quantity, payload::text as payload, "
    "created_at, local_at, day, token::text as token from orders"
)


@dataclass(frozen=True)
class Bench:
    """What a contender may use: the server, the table's size and a directory of its own."""

    server: PostgresServer
    url: str
    rows: int
    scratch: Path

    def halves(self) -> list[str]:
        middle = self.rows // 2
        return [f"id <= {middle}", f"id > {middle}"]

    def fresh(self, name: str) -> Path:
        path = self.scratch / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path

    def psql(self, sql: str) -> list[str]:
        return [
            str(self.server.bin_dir / "psql"),
            "-qX",
            "-v",
            "ON_ERROR_STOP=1",
            self.url,
            "-c",
            sql,
        ]


def copy_streams(bench: Bench) -> int:
    """Two parallel binary COPY streams to nowhere: the limit."""
    streams = [
        subprocess.Popen(
            bench.psql(f"copy (select * from orders where {half}) to stdout (format binary)"),
            stdout=subprocess.DEVNULL,
        )
        for half in bench.halves()
    ]
    if any(stream.wait() for stream in streams):
        raise RuntimeError("a COPY stream failed")
    return bench.rows


def copy_pipes(bench: Bench) -> int:
    """COPY TO piped into COPY FROM, two streams, into a table with its key."""
    with psycopg.connect(bench.url, autocommit=True) as connection:
        connection.execute("drop table if exists piped")
        connection.execute("create table piped (like orders including all)")
    pairs = []
    for half in bench.halves():
        reader = subprocess.Popen(
            bench.psql(f"copy (select * from orders where {half}) to stdout (format binary)"),
            stdout=subprocess.PIPE,
        )
        writer = subprocess.Popen(
            bench.psql("copy piped from stdin (format binary)"), stdin=reader.stdout
        )
        pairs += [reader, writer]
    if any(process.wait() for process in pairs):
        raise RuntimeError("a COPY pipe failed")
    return bench.rows


def bare_adbc(bench: Bench) -> int:
    """ADBC to pyarrow's Parquet writer in two bare processes, every type exact."""
    out = bench.fresh("bare-adbc")
    halves = enumerate(bench.halves())
    jobs = [(bench.url, half, str(out / f"{number}.parquet")) for number, half in halves]
    return sum(warm_pool().starmap(_adbc_to_parquet, jobs))


@cache
def warm_pool() -> Pool:
    """Kept between passes: what starting Python costs is not what is measured."""
    return multiprocessing.get_context("spawn").Pool(2)


def _adbc_to_parquet(url: str, where: str, path: str) -> int:
    import adbc_driver_postgresql.dbapi
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows, writer = 0, None
    with adbc_driver_postgresql.dbapi.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f"{EXACT_SELECT} where {where}")
        for batch in cursor.fetch_record_batch():
            place = batch.schema.get_field_index("amount")
            amount = batch.column(place).cast(pa.string()).cast(pa.decimal128(12, 2))
            exact = batch.set_column(place, "amount", amount)
            writer = writer or pq.ParquetWriter(path, exact.schema, compression="zstd")
            writer.write_batch(exact)
            rows += exact.num_rows
    if writer:
        writer.close()
    return rows


def spark_script(kind: str) -> Callable[[Bench], Pass]:
    """A plain PySpark script: JDBC with eight key partitions → Parquet, or to_json → text."""

    def run(bench: Bench) -> Pass:
        out = bench.fresh(f"spark-{kind}")
        arguments = [kind, bench.url, str(bench.rows), str(out)]
        subprocess.run(
            [sys.executable, "-m", "benchmarks.spark_jdbc", *arguments],
            check=True,
            capture_output=True,
        )
        warm = json.loads((out / "pass.json").read_text())
        return Pass(bench.rows, warm["seconds"], warm["cpu_seconds"])

    return run


def dlt_connectorx(bench: Bench) -> int:
    """dlt with its ConnectorX backend → Parquet."""
    out = bench.fresh("dlt")
    subprocess.run(
        [sys.executable, "-m", "benchmarks.dlt_connectorx", bench.url, str(out)],
        check=True,
        capture_output=True,
    )
    return bench.rows


def duckdb_scanner(bench: Bench) -> int:
    """DuckDB's postgres scanner → one Parquet file."""
    import duckdb
    import duckdb_extension_postgres_scanner as scanner

    out = bench.fresh("duckdb")
    found = next(Path(scanner.__file__).parent.rglob("*.duckdb_extension"))
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    try:
        connection.execute("set threads = 2")
        connection.execute(f"load '{found}'")
        connection.execute(f"attach '{bench.url}' as pg (type postgres, read_only)")
        connection.execute(
            f"copy (select * from pg.public.orders) to '{out}/orders.parquet' "
            "(format parquet, compression zstd)"
        )
    finally:
        connection.close()
    return bench.rows
