"""What a source has: from the stored catalogue, and on a miss by one live look."""

import logging
from collections.abc import Mapping, Sequence

from refill.clock import Clock
from refill.connectors.contract import Connector, Context, Source
from refill.domain.errors import Invalid, SourceRefused, SourceUnavailable
from refill.domain.pipeline import Database
from refill.domain.table import Column, Table
from refill.settings import Settings
from refill.store.port import PipelineStore

log = logging.getLogger(__name__)


class SourceLook:
    """A source that is down answers nothing: what cannot be asked is accepted, and fails when it
    runs, with that reason."""

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

    def find_table(self, database: Database, name: str) -> Table | None:
        """None: there is none. A table without columns: the source could not be asked."""
        schema, table_name = split_name(name)
        for table in database.catalogue:
            if table.full_name == name or (table.schema_name, table.name) == (schema, table_name):
                return table
        source = self._open(database)
        try:
            found = source.find_table(schema, table_name)
        except (SourceUnavailable, SourceRefused) as error:
            self._note(database, error)
            return Table(schema_name=schema, name=table_name, columns=())
        finally:
            source.close()
        if found is not None:
            self._store.save_catalogue(database.id, (*database.catalogue, found), self._clock())
        return found

    def describe_query(self, database: Database, query: str) -> Sequence[Column]:
        """The query's columns; none when the source could not be asked, Invalid when it refuses."""
        source = self._open(database)
        try:
            return source.describe_query(query)
        except SourceUnavailable as error:
            self._note(database, error)
            return ()
        except SourceRefused as error:
            raise Invalid.of("query", error.message) from error
        finally:
            source.close()

    def _open(self, database: Database) -> Source:
        connector = self._connectors[database.type]
        if connector.open_source is None:
            raise Invalid.of("data_source_id", f"{database.type} cannot be read from.")
        options = connector.options_model.model_validate(dict(database.options))
        return connector.open_source(
            options,
            Context(
                team_id=database.team_id,
                files_root=str(self._settings.files_path),
                allow_private_hosts=self._settings.allow_private_hosts,
            ),
        )

    def _note(self, database: Database, error: Exception) -> None:
        log.info(
            "source could not be asked: %s",
            error,
            extra={"action": "source_look", "database_id": database.id},
        )


def split_name(name: str) -> tuple[str, str]:
    """("schema", "table"); public when no schema is written."""
    schema, dot, table = name.partition(".")
    return (schema, table) if dot else ("public", name)
