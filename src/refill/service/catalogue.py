"""What is known of a database's tables: stored when it was added or refreshed, and looked up live,
once, where it must be right or is not stored."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar

from refill.clock import Clock
from refill.connectors.kit.contract import Connector, Context, Source
from refill.domain.errors import RefillError, SourceUnavailable, TerminalError, TransientError
from refill.domain.pipeline import Database
from refill.domain.table import Column, Table, split_name
from refill.service.options import parse_options
from refill.settings import Settings
from refill.store.port import PipelineStore

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
SILENT_SECONDS = 15.0  # how long a source that did not answer is not asked again

T = TypeVar("T")


class Catalogue:
    """Reads tables of sources, never for longer than a person waits."""

    def __init__(
        self,
        *,
        store: PipelineStore,
        connectors: Mapping[str, Connector],
        settings: Settings,
        clock: Clock,
    ) -> None:
        self._store = store
        self._connectors = connectors
        self._settings = settings
        self._clock = clock
        # a source that hangs must not take the API's own threads with it
        self._threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="catalogue")
        self._silent_until: dict[str, tuple[datetime, float]] = {}

    @contextmanager
    def open(self, database: Database) -> Iterator[Source]:
        connector = self._connectors[database.type]
        if connector.open_source is None:
            raise SourceUnavailable(f"{connector.title} cannot be read from.")
        options = parse_options(connector, database.options)
        source = connector.open_source(options, self.context(database.team_id))
        try:
            yield source
        finally:
            source.close()

    def context(self, team_id: int) -> Context:
        return Context(
            team_id=team_id,
            files_root=str(self._settings.files_path),
            allow_private_hosts=self._settings.allow_private_hosts,
            allowed_networks=self._settings.allowed_networks,
            refused_networks=self._settings.refused_networks,
        )

    def test(self, database: Database) -> None:
        """Raises what a person should read when the database cannot be used."""
        with self.open(database) as source:
            source.test()

    def refresh(self, database: Database) -> tuple[Table, ...]:
        """Reads the whole catalogue and keeps it."""
        with self.open(database) as source:
            tables = source.catalogue()
        self._store.save_catalogue(database.id, tables, self._clock())
        return tables

    def refresh_if_reachable(self, database: Database) -> None:
        """For a database just added: waits a moment, and lets a slow one finish by itself."""
        future = self._threads.submit(self.refresh, database)
        future.add_done_callback(_log_failure)
        try:
            future.result(LOOK_SECONDS)
        except (FutureTimeout, TransientError, TerminalError):
            return

    def stored(self, database: Database) -> tuple[Table, ...]:
        """The tables as they were when they were last read; none: they never were."""
        return self._store.get_catalogue(database.id).tables

    def read_now(self, database: Database) -> tuple[Table, ...]:
        """The tables as they are now; as stored where the source does not answer in two seconds.
        SourceUnavailable, or why it refused us, when none are stored either."""
        future = self._threads.submit(self.refresh, database)
        future.add_done_callback(_log_failure)
        try:
            return future.result(LOOK_SECONDS)
        except (FutureTimeout, TransientError, TerminalError) as exc:
            if stored := self.stored(database):
                return stored
            if isinstance(exc, RefillError):
                raise
            raise SourceUnavailable(
                f"{database.name} did not list its tables in {LOOK_SECONDS:g} seconds; try again."
            ) from exc

    def find(self, database: Database, name: str) -> Table | None:
        """The table of that name: as stored, else as `find_now` finds it."""
        return pick(self.stored(database), name) or self.find_now(database, name)

    def find_now(self, database: Database, name: str) -> Table | None:
        """The table as it is now, by one look of two seconds at most; as stored where the source
        does not answer. One without columns: nobody knows it, and what is wrong shows when it is
        read."""
        schema, table_name = split_name(name)
        try:
            return self._ask(database, lambda: self._look(database, schema, table_name))
        except (FutureTimeout, TransientError, TerminalError):
            unknown = Table(schema_name=schema, name=table_name, columns=())
            return pick(self.stored(database), name) or unknown

    def query_dialect(self, database: Database) -> str | None:
        return self._connectors[database.type].query_dialect

    def describe(self, database: Database, query: str) -> tuple[Column, ...]:
        """The columns that a query with a bound :date returns; none: the source did not answer in
        two seconds. Invalid on `query` when the source cannot make sense of it."""
        try:
            return self._ask(database, lambda: self._describe(database, query))
        except (FutureTimeout, TransientError, TerminalError):
            return ()

    def _ask(self, database: Database, look: Callable[[], T]) -> T:
        """FutureTimeout after two seconds, and at once for some time after that: every request of
        somebody who waits for a dead source would take them, and a thread, again. One whose
        options were changed since is asked."""
        changed, until = self._silent_until.get(database.id, (None, 0.0))
        if changed == database.updated_at and time.monotonic() < until:
            raise FutureTimeout
        future = self._threads.submit(look)
        try:
            return future.result(LOOK_SECONDS)
        except FutureTimeout:
            # one that still waits for a thread says nothing of its source
            if not future.cancel():
                until = time.monotonic() + SILENT_SECONDS
                self._silent_until[database.id] = (database.updated_at, until)
            raise

    def _describe(self, database: Database, query: str) -> tuple[Column, ...]:
        with self.open(database) as source:
            return source.describe_query(query)

    def _look(self, database: Database, schema: str, name: str) -> Table | None:
        with self.open(database) as source:
            table = source.find_table(schema, name)
        if table is not None:
            # read again: a refresh may have come in between
            kept = self.stored(database)
            if table not in kept:
                others = [known for known in kept if known.full_name != table.full_name]
                self._store.save_catalogue(database.id, [*others, table], self._clock())
        return table

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def pick(tables: Iterable[Table], name: str) -> Table | None:
    wanted = split_name(name)
    return next((t for t in tables if (t.schema_name, t.name) == wanted), None)


def _log_failure(future: "Future[tuple[Table, ...]]") -> None:
    if future.cancelled():
        return
    error = future.exception()
    if error is not None:
        level = logging.INFO if isinstance(error, RefillError) else logging.ERROR
        logger.log(level, "the catalogue could not be read: %s", error)
