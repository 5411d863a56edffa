"""A folder of JSON lines: no keys, no dates, no queries, no server. A source of this suite's own,
to show that it asks of nobody what only a database has."""

import itertools
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import Field

from refill.connectors.kit.contract import Connector, Context, Options, Source
from refill.connectors.kit.fields import FieldNote
from refill.connectors.kit.frozen import check_columns
from refill.domain.errors import SourceRefused, SourceUnavailable
from refill.domain.slice import Extent
from refill.domain.spec import KeyedRead, Read
from refill.domain.table import Column, Family, Table
from refill.planning.bounds import Bounds
from tests.contract.source.bed import SourceBed, rows_of

_FAMILIES = {int: Family.INTEGER, str: Family.TEXT}
_ARROW = {Family.INTEGER: pa.int64(), Family.TEXT: pa.string()}


class LinesOptions(Options):
    folder: str = Field(description="where the files are")


class LinesSource(Source):
    """A file is a table; its first line says what the columns are."""

    def __init__(self, options: LinesOptions, context: Context) -> None:
        self._folder = Path(options.folder)

    def test(self) -> None:
        self.catalogue()

    def catalogue(self) -> tuple[Table, ...]:
        with errors():
            names = sorted(path.stem for path in self._folder.iterdir())
        return tuple(table for name in names if (table := self.find_table("public", name)))

    def find_table(self, schema: str, name: str) -> Table | None:
        if schema != "public" or not self._file(name).exists():
            return None
        with errors(), self._file(name).open() as lines:
            first = json.loads(next(lines))
        columns = [
            Column(
                name=key, type=type(value).__name__, family=_FAMILIES[type(value)], sortable=False
            )
            for key, value in first.items()
        ]
        return Table(schema_name=schema, name=name, columns=tuple(columns))

    def check(self, read: Read) -> None:
        assert isinstance(read, KeyedRead)
        # all of them: a folder that is away is no table that is gone
        found = {table.name: table.columns for table in self.catalogue()}
        check_columns(read, found.get(read.table.name))

    def bounds(self, read: KeyedRead, boundaries_wanted: int) -> Bounds:
        with errors():
            size = self._file(read.table.name).stat().st_size
        return Bounds(rows_estimated=size // 40, bytes_estimated=size)

    def schema(self, read: Read) -> pa.Schema:
        return pa.schema(
            pa.field(
                each.name, _ARROW[each.family], metadata=FieldNote.of(each, "lines").metadata()
            )
            for each in read.fields
        )

    def read(self, read: Read, extent: Extent) -> Iterator[pa.RecordBatch]:
        self.check(read)
        assert isinstance(read, KeyedRead)
        schema = self.schema(read)
        with errors(), self._file(read.table.name).open() as lines:
            while some := list(itertools.islice(lines, 300)):
                records = [json.loads(line) for line in some]
                yield pa.RecordBatch.from_pylist(
                    [{name: record[name] for name in schema.names} for record in records], schema
                )

    def close(self) -> None: ...

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.jsonl"


@contextmanager
def errors() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as exc:
        raise SourceUnavailable("The folder is away; mount it.") from exc
    except OSError as exc:
        raise SourceRefused(f"The folder cannot be read: {exc.strerror}.") from exc


LINES = Connector(
    type="lines",
    title="JSON lines",
    options_model=LinesOptions,
    is_source=True,
    open_source=LinesSource,
)


class LinesBed(SourceBed):
    name = "lines"
    connector_type = "lines"
    keyed = False
    dated = False
    keyless_name = "rows"

    @classmethod
    def connector(cls) -> Connector:
        return LINES

    def start(self) -> None:
        self.file = self.folder / "rows.jsonl"
        lines = [
            json.dumps({"id": number, "day": day.isoformat(), "extra": extra})
            for number, day, extra in rows_of()
        ]
        self.file.write_text("\n".join(lines) + "\n")

    def options(self) -> Mapping[str, Any]:
        return {"folder": str(self.folder)}

    def unreachable(self) -> Mapping[str, Any]:
        return {"folder": str(self.folder / "away")}

    def refused(self) -> Mapping[str, Any]:
        return {"folder": str(self.file)}

    def drop_column(self) -> None:
        records = [json.loads(line) for line in self.file.read_text().splitlines()]
        self.file.write_text(
            "".join(json.dumps({"id": r["id"], "day": r["day"]}) + "\n" for r in records)
        )

    def drop_table(self) -> None:
        self.file.unlink()
