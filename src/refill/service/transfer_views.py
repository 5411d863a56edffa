"""Transfers as their users look at them, and what one can be made of."""

from dataclasses import dataclass
from datetime import date

from refill.connectors.kit.contract import Connector
from refill.domain.backfill import ACTIVE, CountedBackfill
from refill.domain.errors import Invalid, NotFound
from refill.domain.pipeline import Database, Destination, Kind, Transfer
from refill.domain.table import Table
from refill.service.databases import Databases
from refill.service.destinations import Destinations
from refill.store.port import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceView:
    """A database, and what its system is called."""

    database: Database
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenSource:
    """A source with its tables, as they are known."""

    source: SourceView
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferView:
    transfer: Transfer
    source: SourceView


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTransfer:
    transfer: Transfer
    database: Database
    destination: Destination
    backfill: CountedBackfill | None  # the one under way; of several the newest
    last_run: date | None  # the day, in UTC


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Everything that a transfer of the team can be made of."""

    sources: tuple[SourceView, ...]
    destinations: tuple[Destination, ...]
    types: tuple[Connector, ...]


class TransferViews:
    def __init__(self, *, store: Store, databases: Databases, destinations: Destinations) -> None:
        self._store = store
        self._databases = databases
        self._destinations = destinations

    def get(self, team_id: int, transfer_id: int) -> TransferView:
        transfer = self._store.get_transfer(team_id, transfer_id)
        database = self._store.get_database(team_id, transfer.database_id)
        return TransferView(transfer=transfer, source=self._source(database))

    def list_all(self, team_id: int) -> tuple[ListedTransfer, ...]:
        # before what they name: one that is made meanwhile is not missed by them
        transfers = self._store.list_transfers(team_id)
        under_way = self._store.list_backfills(team_id, kind=Kind.TRANSFER, statuses=ACTIVE).items
        backfills = {backfill.pipeline_id: backfill for backfill in reversed(under_way)}
        last_runs = self._store.last_run_days(team_id)
        databases = {found.id: found for found in self._store.list_databases(team_id)}
        destinations = {found.id: found for found in self._store.list_destinations(team_id)}
        return tuple(
            ListedTransfer(
                transfer=transfer,
                database=databases[transfer.database_id],
                destination=destinations[transfer.destination_id],
                backfill=backfills.get(str(transfer.id)),
                last_run=last_runs.get(transfer.id),
            )
            for transfer in transfers
        )

    def choices(self, team_id: int) -> Choices:
        return Choices(
            sources=tuple(
                self._source(database) for database in self._store.list_databases(team_id)
            ),
            destinations=self._store.list_destinations(team_id),
            types=self._destinations.types(),
        )

    def choose(self, team_id: int, database: str, destination_id: int) -> ChosenSource:
        """The source, where both are there."""
        found = self._find(team_id, "source_id", database)
        self._destinations.get(team_id, destination_id)
        tables = self._store.get_catalogue(found.id).tables
        return ChosenSource(source=self._source(found), tables=tables)

    def connect(self, team_id: int, database: str, destination_type: str) -> Database:
        """A database is connected already when it is added."""
        found = self._find(team_id, "data_source_id", database)
        self._destinations.connector(destination_type)
        return found

    def _source(self, database: Database) -> SourceView:
        return SourceView(database=database, title=self._databases.title(database))

    def _find(self, team_id: int, field: str, name: str) -> Database:
        try:
            return self._store.get_database(team_id, name)
        except NotFound:
            raise Invalid.of(field, f"there is no database {name}; add it first.") from None
