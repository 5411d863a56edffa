"""What a backfill of a transfer freezes: the columns and their types, the dates, the place."""

from datetime import date

from refill.domain.errors import Invalid
from refill.domain.pipeline import Database, Kind, Spec, Transfer
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

    def freeze(self, transfer: Transfer, dates: tuple[date, ...], *, strict: bool = True) -> Spec:
        """A table without columns in it: the source could not be asked, and planning completes
        what was frozen, or fails with that reason. Not `strict`: so it is too where the table or
        a column is gone, which is Invalid otherwise."""
        database = self._store.get_database(transfer.team_id, transfer.database_id)
        destination = self._store.get_destination(transfer.team_id, transfer.destination_id)
        try:
            table = self._find(transfer, database)
        except Invalid:
            if strict:
                raise
            schema, name = split_name(transfer.table or "")
            table = Table(schema_name=schema, name=name, columns=())
        return Spec(
            kind=Kind.TRANSFER,
            database_id=database.id,
            database_type=database.type,
            database_name=database.name,
            table=table,
            query=transfer.query,
            columns=transfer.columns or tuple(column.name for column in table.columns),
            date_column=transfer.date_column,
            timezone=transfer.timezone,
            dates=dates,
            transform=transfer.transform,
            sink_type=destination.type,
            sink_options=self._destinations.frozen_options(destination),
            transfer_id=transfer.id,
            destination_id=destination.id,
            destination_table=transfer.destination_table,
            max_rejects=transfer.max_rejects,
        )

    def _find(self, transfer: Transfer, database: Database) -> Table:
        if transfer.query is not None:
            kept = [Column.model_validate(item) for item in transfer.extra.get(QUERY_COLUMNS, ())]
            columns = tuple(kept) or self._catalogue.describe(database, transfer.query)
            # a query has no name of its own; its columns stand where a table's would
            return Table(schema_name="", name="query", kind="q", columns=columns)
        table = self._catalogue.find_now(database, transfer.table or "")
        if table is None:
            raise _mend(f"its table {transfer.table} is not in {database.name} any more")
        wanted = {*transfer.columns, transfer.date_column or ""} - {""}
        for name in sorted(wanted):
            if table.columns and table.column(name) is None:
                raise _mend(f"its table {transfer.table} has no column {name} any more")
        return table


def _mend(problem: str) -> Invalid:
    return Invalid.of("transfer_id", f"{problem}; mend the transfer first.")
