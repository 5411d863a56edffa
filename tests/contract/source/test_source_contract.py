"""What every source keeps to, whatever it reads from. A new source adds a bed here."""

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlparse

import psycopg
import pytest

from refill.connectors.kit.contract import Context, Source
from refill.connectors.kit.fields import note_of
from refill.connectors.kit.registry import load_connectors
from refill.domain.errors import SourceChanged, TransientError
from refill.domain.slice import Dated, Whole
from refill.domain.spec import DatedRead, KeyedRead
from refill.planning.plan import PlanSettings
from tests.servers.postgres import PostgresServer, free_port
from tests.specs import slices_of

ROWS = 1000
FIRST = date(2024, 1, 1)
CONTEXT = Context(team_id=1, files_root="/nowhere")


@dataclass(frozen=True)
class Bed:
    """A system with a table `schema.name` of ROWS rows: id 0 … , a hundred a day from FIRST on."""

    type: str
    options: dict[str, Any]
    unreachable: dict[str, Any]
    schema: str
    name: str
    drop_column: Callable[[], object]

    def open(self, options: dict[str, Any] | None = None) -> Source:
        connector = load_connectors()[self.type]
        assert connector.open_source is not None
        parsed = connector.options_model(**(options or self.options))
        # as they travel to a task
        return connector.open_source(*pickle.loads(pickle.dumps((parsed, CONTEXT))))


def postgres_bed(server: PostgresServer) -> Bed:
    url = server.create_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE rows (id bigint PRIMARY KEY, day date, extra text)")
        connection.execute(
            "INSERT INTO rows SELECT i, %s::date + i / 100, 'x' FROM generate_series(0, %s) i",
            (FIRST, ROWS - 1),
        )
    parts = urlparse(url)
    options = {
        "hostname": parts.hostname,
        "port": parts.port,
        "database": parts.path[1:],
        "username": parts.username,
        "password": parts.password,
    }

    def drop_column() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER TABLE rows DROP COLUMN extra")

    return Bed("postgres", options, {**options, "port": free_port()}, "public", "rows", drop_column)


@pytest.fixture(params=[postgres_bed], ids=["postgres"])
def bed(request: pytest.FixtureRequest, postgres: PostgresServer) -> Bed:
    made: Bed = request.param(postgres)
    return made


@pytest.fixture
def source(bed: Bed) -> Iterator[Source]:
    source = bed.open()
    yield source
    source.close()


@pytest.fixture
def read(bed: Bed, source: Source) -> KeyedRead:
    table = source.find_table(bed.schema, bed.name)
    assert table is not None
    return KeyedRead(table=table, sort_columns=table.key)


def ids(batches: Iterator[Any]) -> list[int]:
    return [number for batch in batches for number in batch.column("id").to_pylist()]


def test_it_can_be_tested_and_lists_its_tables(bed: Bed, source: Source) -> None:
    source.test()
    found = source.catalogue()
    assert (bed.schema, bed.name) in {(table.schema_name, table.name) for table in found}
    assert source.find_table(bed.schema, "nothing of that name") is None


def test_the_schema_needs_no_connection_and_every_batch_is_of_it(
    bed: Bed, source: Source, read: KeyedRead
) -> None:
    away = bed.open(bed.unreachable)
    schema = away.schema(read)
    for batch in source.read(read, Whole()):
        assert batch.schema.equals(schema, check_metadata=True)
    notes = {field.name: note_of(field) for field in schema}
    assert {name: note.family for name, note in notes.items()} == {
        column.name: column.family for column in read.fields
    }
    assert all(note.system and note.native_type for note in notes.values())


def test_the_planned_slices_are_the_whole_table_once(source: Source, read: KeyedRead) -> None:
    extents = slices_of(source, read, PlanSettings(smallest_slice_rows=100))
    assert len(extents) > 2
    found = [number for extent in extents for number in ids(source.read(read, extent))]
    assert sorted(found) == list(range(ROWS))


def test_only_the_columns_asked_for_come_in_their_order(source: Source, read: KeyedRead) -> None:
    some = read.model_copy(update={"columns": ("extra", "id")})
    assert source.schema(some).names == ["extra", "id"]
    assert {tuple(batch.schema.names) for batch in source.read(some, Whole())} == {("extra", "id")}


def test_dates_together_are_what_they_are_alone(source: Source, read: KeyedRead) -> None:
    dated = DatedRead(table=read.table, date_column="day")
    dates = [FIRST + timedelta(days=number) for number in range(-1, 12)]
    together = {day: sorted(ids(batches)) for day, batches in source.read_dates(dated, dates)}
    assert list(together) == dates
    alone = {day: sorted(ids(source.read(dated, Dated(date=day)))) for day in dates}
    assert together == alone
    assert alone[FIRST] == list(range(100))


def test_reading_may_stop_and_begin_again(source: Source, read: KeyedRead) -> None:
    batches = source.read(read, Whole())
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert len(ids(source.read(read, Whole()))) == ROWS
    source.close()
    assert len(ids(source.read(read, Whole()))) == ROWS


def test_a_source_that_is_away_is_worth_trying_again(bed: Bed, read: KeyedRead) -> None:
    away = bed.open(bed.unreachable)
    for use in (
        away.test,
        away.catalogue,
        lambda: away.check(read),
        lambda: away.bounds(read, 10),
        lambda: list(away.read(read, Whole())),
    ):
        with pytest.raises(TransientError) as caught:
            use()
        assert "\n" not in caught.value.message


def test_a_column_that_is_gone_is_said_and_not_read_over(
    bed: Bed, source: Source, read: KeyedRead
) -> None:
    source.check(read)
    bed.drop_column()
    with pytest.raises(SourceChanged, match="extra"):
        source.check(read)
    with pytest.raises(SourceChanged, match="extra"):
        list(source.read(read, Whole()))
    fewer = read.model_copy(update={"columns": ("id", "day")})
    source.check(fewer)
    assert len(ids(source.read(fewer, Whole()))) == ROWS
