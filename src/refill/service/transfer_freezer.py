"""What a backfill of a transfer freezes: the columns and their types, the dates, the place."""

from datetime import date

from refill.domain.errors import Invalid
from refill.domain.pipeline import Database, Transfer
from refill.domain.spec import DatedRead, QueryRead, TransferSpec
from refill.domain.table import Column, Table, split_name
from refill.service.catalogue import Catalogue
from refill.service.destinations import Destinations
from refill.service.transfer_settings import QUERY_COLUMNS
from refill.store.port import PipelineStore


class TransferFreezer:
    """Later edits of the transfer, its database or its destination do not reach what it made."""

    def __init__(
        self, *, store: PipelineStore, destinations: Destinations, catalogue: Catalogue
    ) -> None:
        self._store = store
        self._destinations = destinations
        self._catalogue = catalogue

    def freeze(
        self, transfer: Transfer, dates: tuple[date, ...], *, strict: bool = True
    ) -> TransferSpec:
        """A read without columns: the source could not be asked, and planning completes what was
        frozen, or fails with that reason. Not `strict`: so it is too where the table or a column is
        gone, which is Invalid otherwise."""
        database = self._store.get_database(transfer.team_id, transfer.database_id)
        destination = self._store.get_destination(transfer.team_id, transfer.destination_id)
        return TransferSpec(
            database_id=database.id,
            database_type=database.type,
            database_name=database.name,
            read=self._read(transfer, database, strict=strict),
            dates=dates,
            transform=transfer.transform,
            sink_type=destination.type,
            sink_options=self._destinations.frozen_options(destination),
            transfer_id=transfer.id,
            destination_id=destination.id,
            destination_table=transfer.destination_table,
            max_rejects=transfer.max_rejects,
        )

    def _read(
        self, transfer: Transfer, database: Database, *, strict: bool
    ) -> DatedRead | QueryRead:
        if transfer.query is not None:
            kept = [Column.model_validate(item) for item in transfer.extra.get(QUERY_COLUMNS, ())]
            return QueryRead(
                query=transfer.query,
                fields=tuple(kept) or self._catalogue.describe(database, transfer.query),
                date_column=transfer.date_column,
            )
        if transfer.table is None or transfer.date_column is None:
            raise _mend("it names no table and date column to read")
        try:
            table = self._find(transfer, transfer.table, transfer.date_column, database)
        except Invalid:
            if strict:
                raise
            schema, name = split_name(transfer.table)
            table = Table(schema_name=schema, name=name, columns=())
        return DatedRead(
            table=table,
            columns=transfer.columns or tuple(column.name for column in table.columns),
            date_column=transfer.date_column,
            timezone=transfer.timezone,
        )

    def _find(self, transfer: Transfer, name: str, date_column: str, database: Database) -> Table:
        table = self._catalogue.find_now(database, name)
        if table is None:
            raise _mend(f"its table {name} is not in {database.name} any more")
        for column in sorted({*transfer.columns, date_column}):
            if table.columns and table.column(column) is None:
                raise _mend(f"its table {name} has no column {column} any more")
        return table


def _mend(problem: str) -> Invalid:
    return Invalid.of("transfer_id", f"{problem}; mend the transfer first.")
