"""What is known of a database's tables: stored when it was added or refreshed, and looked up live,
once, where it must be right or is not stored."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TypeVar

from refill.clock import Clock
from refill.connectors.kit.contract import Connector, Context, Source
from refill.domain.errors import (
    RateLimited,
    RefillError,
    SourceUnavailable,
    TerminalError,
    TransientError,
)
from refill.domain.pipeline import Database
from refill.domain.table import Column, Table, split_name
from refill.service.options import parse_options
from refill.service.probes import NoAnswer, Probes
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
        probes: Probes,
    ) -> None:
        self._store = store
        self._connectors = connectors
        self._settings = settings
        self._clock = clock
        self._probes = probes
        self._silent_until: dict[str, tuple[datetime, float]] = {}

    def ask(self, database: Database, use: Callable[[Source], T]) -> T:
        """What `use` finds out from the database, opened for it and closed after it."""
        try:
            return self._probes.ask(database.team_id, lambda: self._open(database), use)
        except NoAnswer as exc:
            raise SourceUnavailable(
                f"{database.name} did not answer in {self._probes.seconds:g} seconds; see that it "
                "runs and is not busy, then try again."
            ) from exc

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
        self.ask(database, lambda source: source.test())

    def refresh(self, database: Database) -> tuple[Table, ...]:
        """Reads the whole catalogue and keeps it."""
        return self.ask(database, self._reader(database))

    def refresh_if_reachable(self, database: Database) -> None:
        """For a database just added: waits a moment, and lets a slow one finish by itself."""
        try:
            self._refresh_soon(database)
        except (NoAnswer, RateLimited, TransientError, TerminalError) as exc:
            _log_failure(exc)

    def stored(self, database: Database) -> tuple[Table, ...]:
        """The tables as they were when they were last read; none: they never were."""
        return self._store.get_catalogue(database.id).tables

    def read_now(self, database: Database) -> tuple[Table, ...]:
        """The tables as they are now; as stored where the source does not answer in two seconds.
        SourceUnavailable, or why it refused us, when none are stored either."""
        try:
            return self._refresh_soon(database)
        except (NoAnswer, RateLimited, TransientError, TerminalError) as exc:
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
            return self._ask(
                database, lambda source: self._look(source, database, schema, table_name)
            )
        except (NoAnswer, RateLimited, TransientError, TerminalError):
            unknown = Table(schema_name=schema, name=table_name, columns=())
            return pick(self.stored(database), name) or unknown

    def query_dialect(self, database: Database) -> str | None:
        return self._connectors[database.type].query_dialect

    def describe(self, database: Database, query: str) -> tuple[Column, ...]:
        """The columns that a query with a bound :date returns; none: the source did not answer in
        two seconds. Invalid on `query` when the source cannot make sense of it."""
        try:
            return self._ask(database, lambda source: source.describe_query(query))
        except (NoAnswer, RateLimited, TransientError, TerminalError):
            return ()

    def _ask(self, database: Database, look: Callable[[Source], T]) -> T:
        """NoAnswer after two seconds, and at once for some time after that: every request of
        somebody who waits for a dead source would take them, and a thread, again. One whose
        options were changed since is asked."""
        changed, until = self._silent_until.get(database.id, (None, 0.0))
        if changed == database.updated_at and time.monotonic() < until:
            raise NoAnswer
        try:
            return self._probes.ask(
                database.team_id, lambda: self._open(database), look, seconds=LOOK_SECONDS
            )
        except NoAnswer:
            until = time.monotonic() + SILENT_SECONDS
            self._silent_until[database.id] = (database.updated_at, until)
            raise

    def _refresh_soon(self, database: Database) -> tuple[Table, ...]:
        return self._probes.ask(
            database.team_id,
            lambda: self._open(database),
            self._reader(database),
            seconds=LOOK_SECONDS,
            goes_on=True,
        )

    def _reader(self, database: Database) -> Callable[[Source], tuple[Table, ...]]:
        def read(source: Source) -> tuple[Table, ...]:
            tables = source.catalogue()
            self._store.save_catalogue(database.id, tables, self._clock())
            return tables

        return read

    def _look(self, source: Source, database: Database, schema: str, name: str) -> Table | None:
        table = source.find_table(schema, name)
        if table is not None:
            # read again: a refresh may have come in between
            kept = self.stored(database)
            if table not in kept:
                others = [known for known in kept if known.full_name != table.full_name]
                self._store.save_catalogue(database.id, [*others, table], self._clock())
        return table

    def _open(self, database: Database) -> Source:
        connector = self._connectors[database.type]
        if connector.open_source is None:
            raise SourceUnavailable(f"{connector.title} cannot be read from.")
        return connector.open_source(
            parse_options(connector, database.options), self.context(database.team_id)
        )


def pick(tables: Iterable[Table], name: str) -> Table | None:
    wanted = split_name(name)
    return next((t for t in tables if (t.schema_name, t.name) == wanted), None)


def _log_failure(error: Exception) -> None:
    said = "it did not answer in time" if isinstance(error, NoAnswer) else error
    logger.info("the catalogue could not be read: %s", said)
