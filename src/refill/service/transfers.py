"""Transfers: dated data of a source → a destination, one run per date."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from refill.clock import Clock
from refill.domain.backfill import ACTIVE, Backfill
from refill.domain.errors import Conflict, Invalid, NotFound
from refill.domain.pipeline import Database, Destination, Kind, Schedule, Transfer
from refill.domain.spec import TransferSpec
from refill.service.catalogue import Catalogue
from refill.service.destinations import Destinations
from refill.service.schedules import INTERVALS
from refill.service.transfer_settings import (
    QUERY_COLUMNS,
    Problem,
    Reading,
    Scalar,
    SettingsReader,
)
from refill.store.port import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferDraft:
    """A transfer as somebody wishes it."""

    name: str
    data_source_id: str  # the name, or the id, of a database
    destination_id: int
    schedule: tuple[Schedule, ...] = ()
    settings: Mapping[str, Scalar] = field(default_factory=dict)
    repeated: tuple[str, ...] = ()  # settings that were given more than once
    extra: Mapping[str, Any] = field(default_factory=dict)


class Transfers:
    """What can be done to transfers."""

    def __init__(
        self,
        *,
        store: Store,
        destinations: Destinations,
        catalogue: Catalogue,
        clock: Clock,
        max_window_days: int,
    ) -> None:
        self._store = store
        self._destinations = destinations
        self._catalogue = catalogue
        self._clock = clock
        self._max_window_days = max_window_days

    def create(
        self, team_id: int, user_id: int, draft: TransferDraft, *, repeated: bool = False
    ) -> Transfer:
        """`repeated`: the same request came before, and may have made it."""
        if repeated:
            for made in self._store.list_transfers(team_id):
                if made.name == draft.name:
                    return made
        database, reading = self._accept(team_id, draft)
        now = self._clock()
        transfer = Transfer(
            id=0,
            team_id=team_id,
            created_at=now,
            created_user_id=user_id,
            updated_at=now,
            **_written(draft, database, reading),
        )
        return _explained(lambda: self._store.insert_transfer(transfer), draft)

    def update(self, team_id: int, transfer_id: int, draft: TransferDraft) -> Transfer:
        """Backfills that were made before go on as they were frozen."""
        stored = self._store.get_transfer(team_id, transfer_id)
        database, reading = self._accept(team_id, draft, transfer_id)
        now = self._clock()
        changed = replace(stored, updated_at=now, **_written(draft, database, reading))
        # times of a schedule that was not there yet are not made up for
        since = now if changed.schedule != stored.schedule else None
        return _explained(lambda: self._store.update_transfer(changed, schedule_from=since), draft)

    def get(self, team_id: int, transfer_id: int) -> Transfer:
        return self._store.get_transfer(team_id, transfer_id)

    def delete(self, team_id: int, transfer_id: int) -> None:
        self._store.delete_transfer(team_id, transfer_id)

    def set_paused(self, team_id: int, transfer_id: int, paused: bool) -> Transfer:
        """A paused transfer's schedule does not fire; backfills can still be asked for."""
        stored = self._store.get_transfer(team_id, transfer_id)
        if stored.paused is paused:
            return stored
        return self._store.update_transfer(replace(stored, paused=paused, updated_at=self._clock()))

    def examine(
        self, team_id: int, draft: TransferDraft, transfer_id: int | None = None
    ) -> list[Problem]:
        """Everything that is wrong with it; nothing is stored."""
        if transfer_id is not None:
            self._store.get_transfer(team_id, transfer_id)
        return self._examine(team_id, draft, transfer_id)[2]

    def _accept(
        self, team_id: int, draft: TransferDraft, transfer_id: int | None = None
    ) -> tuple[Database, Reading]:
        database, reading, problems = self._examine(team_id, draft, transfer_id)
        if problems or database is None or reading is None:
            fields: dict[str, list[str]] = {}
            for problem in problems:
                fields.setdefault(problem.field, []).append(problem.message)
            summary = "; ".join(f"{name}: {', '.join(found)}" for name, found in fields.items())
            raise Invalid(f"{summary}.", fields)
        return database, reading

    def _examine(
        self, team_id: int, draft: TransferDraft, transfer_id: int | None
    ) -> tuple[Database | None, Reading | None, list[Problem]]:
        problems = [*self._check_names(team_id, draft, transfer_id)]
        problems.extend(
            Problem(field=name, code="notUnique", message=f"{name} is given twice")
            for name in draft.repeated
        )
        for position, schedule in enumerate(draft.schedule):
            problems.extend(check_schedule(schedule, position, self._max_window_days))
        destination: Destination | None = None
        try:
            destination = self._store.get_destination(team_id, draft.destination_id)
        except NotFound:
            problems.append(_missing("destination_id", "destination", draft.destination_id))
        try:
            database = self._store.get_database(team_id, draft.data_source_id)
        except NotFound:
            problems.append(_missing("data_source_id", "database", draft.data_source_id))
            return None, None, problems
        reader = SettingsReader(
            settings=draft.settings,
            find_table=lambda name: self._catalogue.find(database, name),
            describe_query=lambda query: self._catalogue.describe(database, query),
            query_dialect=self._catalogue.query_dialect(database),
        )
        reading = reader.read()
        problems.extend(reader.problems)
        if destination is not None and reading.destination_table:
            problems.extend(self._check_target(destination, reading, transfer_id))
        return database, reading, problems

    def _check_names(
        self, team_id: int, draft: TransferDraft, transfer_id: int | None
    ) -> list[Problem]:
        if not draft.name.strip():
            return [Problem(field="display_name", code="isEmpty", message="a name is needed")]
        for other in self._store.list_transfers(team_id):
            if other.name == draft.name and other.id != transfer_id:
                message = f"transfer {other.id} is called {draft.name} already; choose another name"
                return [Problem(field="display_name", code="notUnique", message=message)]
        return []

    def _check_target(
        self, destination: Destination, reading: Reading, transfer_id: int | None
    ) -> list[Problem]:
        """Two transfers that write the same table would take turns at deleting each other's
        dates, also where two destinations lead to the same table by other names."""
        table = reading.destination_table
        writer = self._writer(destination, table, transfer_id)
        if writer is not None:
            message = (
                f"transfer {writer.id} ({writer.name}) writes the table {table} already; choose "
                "another destination_table"
            )
            return [Problem(field="destination_table", code="notUnique", message=message)]
        # one that was led elsewhere since: its backfills go on as they were frozen
        target = self._destinations.target(destination, table)
        places = self._places(destination.team_id)
        active = self._store.list_backfills(
            destination.team_id, kind=Kind.TRANSFER, statuses=ACTIVE
        ).items
        for backfill in active:
            spec = backfill.spec
            if backfill.pipeline_id == str(transfer_id) or not isinstance(spec, TransferSpec):
                continue
            place = places.get(spec.destination_id)
            if place is None:
                continue
            if self._destinations.target(place, spec.destination_table) == target:
                message = (
                    f"backfill {backfill.id} of transfer {backfill.pipeline_id} still writes the "
                    f"table {table}; wait for it, cancel it, or choose another destination_table"
                )
                return [Problem(field="destination_table", code="notUnique", message=message)]
        return []

    def check_frozen(self, backfill: Backfill) -> None:
        """Conflict when another transfer writes by now what the backfill was to write."""
        spec = backfill.spec
        if not isinstance(spec, TransferSpec):
            return
        try:
            place = self._store.get_destination(backfill.team_id, spec.destination_id)
        except NotFound:
            return  # it fails with that reason
        writer = self._writer(place, spec.destination_table, spec.transfer_id)
        if writer is not None:
            raise Conflict(
                f"Transfer {writer.id} ({writer.name}) writes the table {spec.destination_table} "
                "by now; create a new backfill instead.",
                field="destination_table",
                other=writer.id,
            )

    def _writer(
        self, destination: Destination, table: str, transfer_id: int | None
    ) -> Transfer | None:
        """The transfer, other than that one, that writes this table."""
        target = self._destinations.target(destination, table)
        places = self._places(destination.team_id)
        for other in self._store.list_transfers(destination.team_id):
            place = places.get(other.destination_id)
            if other.id == transfer_id or place is None:
                continue
            if self._destinations.target(place, other.destination_table) == target:
                return other
        return None

    def _places(self, team_id: int) -> Mapping[int, Destination]:
        return {found.id: found for found in self._store.list_destinations(team_id)}


def check_schedule(schedule: Schedule, position: int, max_window_days: int) -> list[Problem]:
    name = f"schedule.{position}"
    found = []

    def complain(part: str, code: str, message: str) -> None:
        found.append(Problem(field=f"{name}.{part}", code=code, message=message))

    if schedule.run_interval not in INTERVALS:
        complain("run_interval", "invalid", f"one of {', '.join(INTERVALS)} is needed")
    if schedule.run_hour is not None and not 0 <= schedule.run_hour <= 23:
        complain("run_hour", "invalid", "an hour from 0 to 23, UTC, is needed")
    if not 1 <= schedule.refresh_window <= max_window_days:
        complain("refresh_window", "invalid", f"1 to {max_window_days} days are needed")
    for part, interval, last in (("run_weekday", "weekly", 7), ("run_day", "monthly", 31)):
        value = getattr(schedule, part)
        if value is None and schedule.run_interval == interval:
            complain(part, "isEmpty", f"a {interval} schedule needs it, 1 to {last}")
        elif value is not None and not 1 <= value <= last:
            complain(part, "invalid", f"a number from 1 to {last} is needed")
    return found


def _missing(name: str, kind: str, identity: object) -> Problem:
    return Problem(field=name, code="notFound", message=f"there is no {kind} {identity}")


def _written(draft: TransferDraft, database: Database, reading: Reading) -> dict[str, Any]:
    return {
        "name": draft.name,
        "database_id": database.id,
        "destination_id": draft.destination_id,
        "destination_table": reading.destination_table,
        "table": reading.table,
        "query": reading.query,
        "date_column": reading.date_column,
        "timezone": reading.timezone,
        "columns": reading.columns,
        "transform": reading.transform,
        "schedule": draft.schedule,
        "max_rejects": reading.max_rejects,
        "extra": {**draft.extra, QUERY_COLUMNS: [c.model_dump() for c in reading.query_columns]},
    }


def _explained(write: Any, draft: TransferDraft) -> Transfer:
    """The store's unique index has the last word when two are created at once."""
    try:
        transfer: Transfer = write()
    except Conflict as error:
        if error.field == "name":
            raise Conflict(
                f"There is a transfer called {draft.name} already; choose another display_name.",
                field="display_name",
            ) from error
        if error.field == "destination_table":
            raise Conflict(
                "Another transfer writes that table of the destination already; "
                "choose another destination_table.",
                field="destination_table",
            ) from error
        raise
    return transfer
