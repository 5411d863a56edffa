"""What a backfill of a sink freezes: the table, what is between, how messages name it."""

from collections.abc import Mapping
from dataclasses import dataclass

from refill.connectors.kit.contract import Connector
from refill.domain.errors import Invalid
from refill.domain.pipeline import Database, Sink
from refill.domain.spec import KeyedRead, SinkSpec
from refill.domain.table import Table
from refill.planning.conditions import check_filter
from refill.planning.freeze import freeze_keyed
from refill.service.catalogue import Catalogue
from refill.service.options import frozen
from refill.service.selection import choose_table
from refill.service.sink_checks import check_sql
from refill.service.sink_sql import check_message, frozen_sql, group_columns
from refill.store.port import PipelineStore


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillRequest:
    table: str | None = None
    sort_column: str | None = None
    start_position: str | None = None
    end_position: str | None = None
    max_rows_per_second: int | None = None
    reason: str | None = None


class SinkFreezer:
    """Later edits of the sink, or of its database, do not reach what it made."""

    def __init__(
        self, *, store: PipelineStore, connectors: Mapping[str, Connector], catalogue: Catalogue
    ) -> None:
        self._store = store
        self._connectors = connectors
        self._catalogue = catalogue

    def freeze(self, sink: Sink, request: BackfillRequest) -> SinkSpec:
        """What the backfill will run, whatever becomes of the sink. A table that the source could
        not be asked about is frozen by its name, and the rest of it when it is planned."""
        name = choose_table(sink, request.table)
        database = self._store.get_database(sink.team_id, sink.database_id)
        table = self._catalogue.find_now(database, name)
        return self.freeze_table(sink, database, name, table, request)

    def freeze_table(
        self,
        sink: Sink,
        database: Database,
        name: str,
        table: Table | None,
        request: BackfillRequest,
    ) -> SinkSpec:
        if sink.status == "disabled":
            raise Invalid.of("sink", f"{sink.name} is disabled; set its status to active first")
        if table is None:
            raise Invalid.of("table", f"{database.name} has no table {name}")
        connector = self._connectors[sink.destination_type]
        read = KeyedRead(
            table=table,
            sort_columns=() if request.sort_column is None else (request.sort_column,),
            start_position=request.start_position,
            end_position=request.end_position,
        )
        if table.columns:
            if sink.transform is not None:
                check_sql(sink.transform, table, group_columns(sink, table))
            check_message(sink, self._connectors.get(database.type), connector, (table,))
            check_filter(sink.filter, table.columns)
            read = freeze_keyed(read, table)
        return SinkSpec(
            database_id=database.id,
            database_type=database.type,
            database_name=database.name,
            read=read,
            sink_type=sink.destination_type,
            sink_options=frozen(connector, sink.destination_options),
            sink_id=sink.id,
            batch_size=sink.batch_size,
            timestamp_format=sink.timestamp_format,
            numeric_format=sink.numeric_format,
            max_rejects=sink.max_rejects,
            max_retry_count=sink.max_retry_count,
            max_rows_per_second=request.max_rows_per_second,
            message=_message(sink, database),
            **frozen_sql(sink, table),
        )


def _message(sink: Sink, database: Database) -> dict[str, object]:
    """How messages name where they come from."""
    return {
        "consumer": {
            "id": sink.id,
            "name": sink.name,
            "annotations": dict(sink.annotations),
        },
        "database": {
            "id": database.id,
            "name": database.name,
            "annotations": dict(database.annotations),
            "database": database.options.get("database"),
            "hostname": database.options.get("hostname"),
        },
    }
