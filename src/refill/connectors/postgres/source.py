"""PostgreSQL as a source: the catalogue by psycopg, the rows by ADBC."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from refill.connectors.kit.contract import Context, Source
from refill.connectors.postgres import bounds as sizes
from refill.connectors.postgres import catalogue, frozen
from refill.connectors.postgres import read as sql
from refill.connectors.postgres.connection import ArrowSession, ArrowStream, connect, cut
from refill.connectors.postgres.errors import translate
from refill.connectors.postgres.lookup import LookUp
from refill.connectors.postgres.native import NativeType, Pages, make_column
from refill.connectors.postgres.options import PostgresOptions
from refill.connectors.postgres.quoting import bind_date, literal
from refill.domain.errors import RefillError, SnapshotLost, SourceUnavailable
from refill.domain.slice import Dated, Extent, NativeExtent
from refill.domain.spec import DatedRead, KeyedRead, QueryRead, Read
from refill.domain.table import Column, Table, TableKind
from refill.planning.bounds import Bounds
from refill.planning.plan import PlannedExtent

if TYPE_CHECKING:
    import pyarrow as pa

    from refill.connectors.postgres.values import Converter

BATCH_BYTES = 8 * 1024 * 1024
CATALOGUE_SECONDS = 60.0
LOOK_SECONDS = 1.0  # beside two at most for the connection
SAMPLE_SECONDS = 20.0
LOCK_TIMEOUT = "5s"  # at a table that is read by its pages, when it begins and at each slice


class PostgresSource(Source):
    """Opened from options; connects when first used. Not for several threads at once."""

    def __init__(
        self, options: PostgresOptions, context: Context, *, batch_bytes: int = BATCH_BYTES
    ) -> None:
        self._options = options
        self._network = context.network
        self._batch_bytes = batch_bytes
        self._arrow: ArrowSession | None = None
        self._open_stream: ArrowStream | None = None
        self._holder: Any = None
        self._lookup = LookUp(options)
        self._asked: Any = None  # the catalogue's session, while it is open
        self._reader: int | None = None  # the thread that waits for rows

    def test(self) -> None:
        where = f"{self._options.hostname}:{self._options.port}/{self._options.database}"
        with self._session(f"connect to {where}", CATALOGUE_SECONDS) as connection:
            connection.execute("SELECT 1")

    def concerns(self) -> tuple[str, ...]:
        with self._session("look at the role", LOOK_SECONDS) as connection:
            return catalogue.role_concerns(connection)

    def catalogue(self) -> tuple[Table, ...]:
        with self._session("list the tables", CATALOGUE_SECONDS) as connection:
            return catalogue.read_catalogue(connection)

    def find_table(self, schema: str, name: str) -> Table | None:
        with self._session(f"look at {schema}.{name}", LOOK_SECONDS) as connection:
            return catalogue.read_table(connection, schema, name)

    def describe_query(self, query: str) -> tuple[Column, ...]:
        with self._session("describe the query", CATALOGUE_SECONDS) as connection:
            return frozen.describe_query(connection, bind_date(query, date(2000, 1, 1)))

    def check(self, read: Read) -> None:
        if isinstance(read, QueryRead):
            frozen.check_frozen(read, self.describe_query(read.query))
            return
        table = self.find_table(read.table.schema_name, read.table.name)
        frozen.check_frozen(read, None if table is None else table.columns)

    def bounds(self, read: KeyedRead, boundaries_wanted: int) -> sizes.PageBounds:
        with self._session(f"size {read.name}", SAMPLE_SECONDS) as connection:
            return sizes.read_bounds(connection, read, boundaries_wanted)

    def cut(
        self, read: KeyedRead, bounds: Bounds, slices: int, snapshot: str | None
    ) -> tuple[PlannedExtent, ...]:
        assert isinstance(bounds, sizes.PageBounds)  # what this source's `bounds` returned
        return sizes.cut_pages(bounds, slices, snapshot)

    def schema(self, read: Read) -> "pa.Schema":
        from refill.connectors.postgres.values import schema_of

        return schema_of(read.fields)

    def read(self, read: Read, extent: Extent) -> Iterator["pa.RecordBatch"]:
        from refill.connectors.postgres.values import Converter

        converter = Converter(read.fields, read.name)
        snapshot = Pages.of(extent).snapshot if isinstance(extent, NativeExtent) else None
        with self._stream(read, sql.slice_query(read, extent), converter, snapshot) as batches:
            for batch in batches:
                yield converter.convert(batch)

    def read_dates(
        self, read: DatedRead | QueryRead, dates: Sequence[date]
    ) -> Iterator[tuple[date, Iterator["pa.RecordBatch"]]]:
        from refill.connectors.postgres.values import Converter, split_days

        if isinstance(read, QueryRead):
            yield from super().read_dates(read, dates)
            return
        converter = Converter(read.fields, read.name)
        for run in contiguous(dates):
            if len(run) == 1:
                yield run[0], self.read(read, Dated(date=run[0]))
                continue
            newest_first = run[0] > run[-1]
            first, last = min(run), max(run)
            query = sql.dates_query(read, first, last, newest_first=newest_first)
            with self._stream(read, query, converter, None) as batches:
                numbers = range(len(run), 0, -1) if newest_first else range(1, len(run) + 1)
                parts = split_days(batches, converter, numbers)
                yield from zip(run, parts, strict=True)

    def hold_snapshot(self, read: KeyedRead) -> str | None:
        self._drop_holder()
        try:
            self._holder = connect(
                self._options,
                "snapshot",
                session={"lock_timeout": LOCK_TIMEOUT},
                network=self._network,
            )
            self._holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            if read.table.kind is TableKind.TABLE:
                # TRUNCATE, CLUSTER and VACUUM FULL move rows or remove them under any snapshot.
                # The first statement: the next one takes the snapshot, and what it sees must stay
                self._holder.execute(f"LOCK TABLE {sql.relation_name(read)} IN ACCESS SHARE MODE")
            found = self._holder.execute("SELECT pg_export_snapshot()").fetchone()
        except Exception as exc:
            self._drop_holder()
            raise translate(exc, f"take a snapshot of {read.name}") from exc
        return str(found[0])

    def look_up(self, query: str, key: Column, keys: Sequence[str]) -> "pa.Table":
        try:
            return self._lookup.rows(query, key, keys)
        except RefillError:
            raise
        except Exception as exc:
            raise translate(exc, "enrich the messages") from exc

    def close(self) -> None:
        """From another thread, too: what waits there for a server that says nothing comes back."""
        if (asked := self._asked) is not None:
            cut(asked)
        if self._reader not in (None, threading.get_ident()):
            # the driver is not to be closed under the hands of who reads: the query is cancelled
            if (arrow := self._arrow) is not None:
                _quietly(arrow.cancel)
            return
        self._drop_arrow()
        self._drop_holder()
        _quietly(self._lookup.close)

    @contextmanager
    def _session(self, doing: str, seconds: float) -> Iterator[Any]:
        try:
            with closing(
                connect(
                    self._options,
                    "catalogue",
                    statement_timeout_seconds=seconds,
                    connect_timeout_seconds=min(seconds, 10.0),
                    network=self._network,
                )
            ) as connection:
                self._asked = connection
                yield connection
        except RefillError:
            raise
        except Exception as exc:
            raise translate(exc, doing) from exc
        finally:
            self._asked = None

    @contextmanager
    def _stream(
        self, read: Read, query: str, converter: "Converter", snapshot: str | None
    ) -> Iterator[Iterator["pa.RecordBatch"]]:
        """The driver's batches of one query. Left before the end, by an error or because nobody
        wants the rest, it drops the connection, which stops the query."""
        doing = f"read {read.name}"
        stream: ArrowStream | None = None
        done = False
        self._reader = threading.get_ident()
        try:
            foreign = _runs_foreign_code(read)
            stream = self._open_stream = self._start(query, snapshot, foreign)
            converter.check(stream.reader.schema)
            yield _pull(stream, doing)
            if (snapshot is not None or foreign) and self._arrow is not None:
                self._arrow.execute("COMMIT")
                if foreign:
                    # what it set or locked in the session is not for the next slice to find
                    self._arrow.execute("DISCARD ALL")
            self._check_types(read)
            done = True
        except RefillError:
            raise
        except Exception as exc:
            raise translate(exc, doing) from exc
        finally:
            self._reader = None
            # one that was closed with its connection meanwhile has nothing left to end
            if stream is None or stream is self._open_stream:
                if done:
                    self._close_stream()
                else:
                    self._drop_arrow()

    def _start(self, query: str, snapshot: str | None, foreign: bool) -> ArrowStream:
        """Begins the query. A connection kept from an earlier slice may have been cut meanwhile:
        no row was read on it yet, so a new one takes its place."""
        kept = self._arrow is not None
        try:
            return self._start_once(query, snapshot, foreign)
        except Exception as exc:
            if not kept or not isinstance(translate(exc, "read"), SourceUnavailable):
                raise
            self._drop_arrow()
            return self._start_once(query, snapshot, foreign)

    def _start_once(self, query: str, snapshot: str | None, foreign: bool) -> ArrowStream:
        if self._arrow is None:
            self._arrow = ArrowSession(self._options, "reading", self._batch_bytes, self._network)
        if snapshot is not None:
            _adopt(self._arrow, snapshot)
        elif foreign:
            # a session's own default is a setting that a query may change; this is not
            self._arrow.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY")
        return self._arrow.query(query)

    def _check_types(self, read: Read) -> None:
        """After the rows: had a column's type changed before them, it would show now."""
        if isinstance(read, QueryRead) or self._arrow is None:
            return
        relation = literal(sql.relation_name(read))
        stream = self._arrow.query(
            "SELECT attname::text, atttypid::int8, atttypmod FROM pg_catalog.pg_attribute "
            f"WHERE attrelid = {relation}::regclass AND attnum > 0 AND NOT attisdropped"
        )
        with closing(stream):
            rows = stream.reader.read_all().to_pydict()
        names, oids, typmods = rows.values()
        now = tuple(
            make_column(name, "another type", NativeType(oid=oid, typmod=typmod))
            for name, oid, typmod in zip(names, oids, typmods, strict=True)
        )
        frozen.check_frozen(read, now)

    def _drop_arrow(self) -> None:
        """A query that still runs is ended first: the driver keeps its connection otherwise."""
        if self._arrow is not None:
            if self._open_stream is not None:
                _quietly(self._arrow.cancel)
                self._close_stream()
            _quietly(self._arrow.close)
            self._arrow = None

    def _close_stream(self) -> None:
        stream, self._open_stream = self._open_stream, None
        if stream is not None:
            _quietly(stream.close)

    def _drop_holder(self) -> None:
        if self._holder is not None:
            _quietly(self._holder.close)
            self._holder = None


def _runs_foreign_code(read: Read) -> bool:
    """A query, or a view, may call whatever its author wrote; a table only gives its rows."""
    return isinstance(read, QueryRead) or read.table.kind is not TableKind.TABLE


def contiguous(dates: Sequence[date]) -> list[list[date]]:
    """Runs of dates that follow one another, up or down, in the order given."""
    runs: list[list[date]] = []
    for day in dates:
        run = runs[-1] if runs else []
        step = day - run[-1] if run else timedelta()
        fits = abs(step) == timedelta(days=1)
        if fits and (len(run) == 1 or step == run[1] - run[0]):
            run.append(day)
        else:
            runs.append([day])
    return runs


def _pull(stream: ArrowStream, doing: str) -> Iterator["pa.RecordBatch"]:
    try:
        yield from stream.reader
    except Exception as exc:
        raise translate(exc, doing) from exc


def _adopt(session: ArrowSession, snapshot: str) -> None:
    try:
        session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        session.execute(f"SET TRANSACTION SNAPSHOT {literal(snapshot)}")
        # whoever waits for our lock on the table makes us wait behind them, and neither would end
        session.execute(f"SET LOCAL lock_timeout = {literal(LOCK_TIMEOUT)}")
    except Exception as exc:
        error = translate(exc, "read under the backfill's snapshot")
        if getattr(exc, "sqlstate", None) in ("22023", "42704"):
            error = SnapshotLost(error.message)
        raise error from exc


def _quietly(action: Callable[[], None]) -> None:
    """Closing what may be broken already: the error that matters was raised before."""
    try:
        action()
    except Exception:
        return
