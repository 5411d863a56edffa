"""Tables of random columns, keys and values, through Spark to every kind of destination.

`REFILL_FIDELITY_EXAMPLES=2000 pytest tests/integration/fidelity` runs as many tables as one likes.
"""

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from refill.connectors.kit.registry import load_connectors
from refill.domain.table import Table
from refill.spark.engine import SparkEngine
from tests.integration.fidelity.moving import Mover, postgres_options
from tests.integration.fidelity.printing import (
    arrow_printed,
    json_matches,
    parse_json,
    printed,
    same_value,
)
from tests.integration.fidelity.values import CONTRIB, KEYS, PLAIN, SETUP, SETUP_CONTRIB, quoted
from tests.servers.postgres import PostgresServer

EXAMPLES = int(os.environ.get("REFILL_FIDELITY_EXAMPLES", "25"))
SEED = int(os.environ.get("REFILL_FIDELITY_SEED", "20240229"))
NAMES = ["plain", "Mixed Case", "ünïcode 表", "select", 'with "quotes"', "x" * 63, "a.b", "%s"]


@dataclass(frozen=True)
class RandomTable:
    """As data, so that a failure prints what to make again."""

    name: str
    columns: tuple[tuple[str, str], ...]  # name, type
    key: tuple[str, ...]
    unique: bool  # a unique index rather than a primary key
    rows: tuple[tuple[str, ...], ...]  # SQL expressions


@st.composite
def tables(draw: st.DrawFn, types: dict[str, st.SearchStrategy[str]]) -> RandomTable:
    chosen = draw(st.lists(st.sampled_from(sorted(types)), min_size=1, max_size=8))
    keys = draw(st.lists(st.sampled_from(sorted(KEYS)), max_size=2, unique=True))
    columns = [(f"key {number}", kind) for number, kind in enumerate(keys)]
    columns += [(f"c{number} {kind}"[:50], kind) for number, kind in enumerate(chosen)]
    count = draw(st.integers(0, 25))
    rows = []
    for _ in range(count):
        row = [draw(KEYS[kind]) for kind in keys]
        row += [draw(st.one_of(types[kind], types[kind], st.just("null"))) for kind in chosen]
        rows.append(tuple(row))
    return RandomTable(
        name=draw(st.sampled_from(NAMES)),
        columns=tuple(columns),
        key=tuple(name for name, _ in columns[: len(keys)]),
        unique=draw(st.booleans()),
        rows=tuple(rows),
    )


@dataclass(frozen=True)
class Bench:
    source: Any
    target: Any
    target_url: str
    mover: Mover
    root: Path
    types: dict[str, st.SearchStrategy[str]]


@pytest.fixture(scope="module")
def bench(
    postgres: PostgresServer, spark_engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    urls = postgres.create_database("fid_source"), postgres.create_database("fid_target")
    root = tmp_path_factory.mktemp("files")
    with (
        psycopg.connect(urls[0], autocommit=True) as source,
        psycopg.connect(urls[1], autocommit=True) as target,
    ):
        for connection in (source, target):
            connection.execute(SETUP)
            if postgres.has_contrib:
                connection.execute(SETUP_CONTRIB)
        mover = Mover(spark_engine, load_connectors(), urls[0], root)
        types = PLAIN | (CONTRIB if postgres.has_contrib else {})
        if not postgres.has_contrib:
            types.pop("xml")
        yield Bench(source, target, urls[1], mover, root, types)
        mover.source.close()


@pytest.mark.timeout(7200)
def test_every_value_of_a_random_table_arrives(bench: Bench) -> None:
    @seed(SEED)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(table=tables(bench.types))
    def holds(table: RandomTable) -> None:
        made = _make(bench.source, bench.mover, table)
        columns = ", ".join(_identifier(name) for name, _ in table.columns)
        expected = printed(bench.source, f"select {columns} from {_identifier(table.name)}")
        types = [column.type for column in made.columns]
        _check_parquet(bench, made, expected, types)
        _check_json(bench, made, expected, types)
        _check_postgres(bench, made, expected, columns)

    holds()


def _make(source: Any, mover: Mover, table: RandomTable) -> Table:
    name = _identifier(table.name)
    source.execute(f"drop table if exists {name} cascade")
    columns = ", ".join(f"{_identifier(column)} {kind}" for column, kind in table.columns)
    source.execute(f"create table {name} ({columns})")
    if table.key:
        keys = ", ".join(_identifier(column) for column in table.key)
        if table.unique:
            for column in table.key:
                source.execute(f"alter table {name} alter {_identifier(column)} set not null")
            source.execute(f"create unique index on {name} ({keys})")
        else:
            source.execute(f"alter table {name} add primary key ({keys})")
    for row in table.rows:
        source.execute(f"insert into {name} values ({', '.join(row)}) on conflict do nothing")
    if len(table.rows) % 2:
        source.execute(f"analyze {name}")
    found = mover.source.find_table("public", table.name)
    assert found is not None
    return found


def _check_parquet(bench: Bench, table: Table, expected: list[Any], types: list[str]) -> None:
    shutil.rmtree(bench.root / "1", ignore_errors=True)
    receipts = bench.mover.move(table, "files", {"path": "p", "format": "parquet"})
    assert sum(receipt.rows_delivered for receipt in receipts) == len(expected)
    found: list[tuple[str | None, ...]] = []
    for path in sorted((bench.root / "1" / "p").glob("[!_]*/*.parquet")):
        part = pq.ParquetFile(path).read()
        columns = [
            arrow_printed(part.column(number), part.schema.field(number))
            for number in range(part.num_columns)
        ]
        found += zip(*columns, strict=True)
    _same_rows(expected, found, types)


def _check_json(bench: Bench, table: Table, expected: list[Any], types: list[str]) -> None:
    shutil.rmtree(bench.root / "1", ignore_errors=True)
    bench.mover.move(table, "files", {"path": "j", "format": "jsonl"})
    records: list[dict[str, Any]] = []
    for path in sorted((bench.root / "1" / "j").glob("[!_]*/*.jsonl")):
        records += [parse_json(line) for line in path.read_text().split("\n") if line]
    assert len(records) == len(expected)
    waiting = list(records)
    names = [column.name for column in table.columns]
    for row in expected:
        place = next(
            (
                number
                for number, record in enumerate(waiting)
                if list(record) == names and all(map(json_matches, record.values(), row, types))
            ),
            None,
        )
        assert place is not None, f"no JSON record is {row} of {types} among {waiting}"
        waiting.pop(place)


def _check_postgres(bench: Bench, table: Table, expected: list[Any], columns: str) -> None:
    name = _identifier(table.name)
    bench.target.execute(f"drop table if exists {name} cascade")
    if not table.key:
        return  # without a key rows are inserted, not upserted: not compared here
    options = {**postgres_options(bench.target_url), "table": f"public.{table.name}"}
    bench.mover.move(table, "postgres", options)
    found = printed(bench.target, f"select {columns} from {name}")
    assert Counter(found) == Counter(expected)
    types = "select attname, format_type(atttypid, atttypmod) from pg_attribute where attnum > 0 "
    types += f"and attrelid = {quoted(name)}::regclass order by attnum"
    assert printed(bench.target, types) == printed(bench.source, types)


def _same_rows(expected: list[Any], found: list[Any], types: list[str]) -> None:
    assert len(expected) == len(found)
    waiting = list(found)
    for row in expected:
        place = next(
            (n for n, other in enumerate(waiting) if all(map(same_value, row, other, types))), None
        )
        assert place is not None, f"no row is {row} of {types} among {waiting}"
        waiting.pop(place)


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
