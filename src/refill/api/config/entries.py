"""Entries of a file: the bodies of the API, with the words that files have for some of it."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, model_validator

from refill.api.body import Body
from refill.api.dialects.sinks.databases import CreateDatabase
from refill.api.dialects.sinks.endpoints import CreateHttpEndpoint
from refill.api.dialects.sinks.sink_forms import CreateSink
from refill.api.dialects.transfers.destinations import CreateTransferDestination
from refill.api.dialects.transfers.setup_forms import Scalar
from refill.api.dialects.transfers.transfers import ScheduleInput
from refill.domain.access import Role
from refill.domain.pipeline import Schedule
from refill.domain.table import split_name
from refill.service.config.changes import Wish
from refill.service.databases import connection_fields
from refill.service.selection import full_name
from refill.service.transfers import TransferDraft

Text = Annotated[str, Field(min_length=1, max_length=255)]
# a sink that no longer has one of these in its file no longer has it
_DROPPED = dict.fromkeys(("filter", "transform", "routing", "enrichment"), "none")
_UNREAD = {"id", "inserted_at", "updated_at", "account_id"}


class Named(Body):
    name: Text
    create_if_not_exists: bool | None = None
    init_sql: str | None = None


class DatabaseEntry(CreateDatabase):
    slot: Named | None = None
    publication: Named | None = None
    slot_name: Text | None = None
    publication_name: Text | None = None
    await_database: Any = None
    tables: Any = None

    def replication_slot(self) -> list[dict[str, Any]] | None:
        slot = self.slot.name if self.slot else self.slot_name
        publication = self.publication.name if self.publication else self.publication_name
        if slot is None or publication is None:
            return self.slots()
        return [{"publication_name": publication, "slot_name": slot}]


class SinkEntry(CreateSink):
    pass


class DestinationEntry(CreateTransferDestination):
    display_name: Text = Field(alias="name")


class TransferEntry(Body):
    name: Text
    database: Text
    destination: Text
    settings: dict[str, Scalar]
    schedule: list[ScheduleInput] = Field(default_factory=list, max_length=20)
    notification_recipients: list[str] = Field(default_factory=list)
    state: Literal["active", "paused"] = "active"


class UserEntry(Body):
    name: Text | None = None
    email: Text | None = None
    role: Role = Role.EDITOR
    password: Any = None  # people come in by keys

    @model_validator(mode="after")
    def has_a_name(self) -> "UserEntry":
        if self.name is None and self.email is None:
            raise ValueError("a user needs a name or an email")
        return self


class TeamEntry(Body):
    name: Text


def _given(entry: BaseModel, *without: str) -> dict[str, Any]:
    return entry.model_dump(
        mode="json", exclude_unset=True, by_alias=True, exclude={*_UNREAD, *without}
    )


def _database(entry: DatabaseEntry) -> Wish:
    fields = connection_fields(entry.url, entry.fields())
    slots = entry.replication_slot()
    draft: dict[str, Any] = {
        "name": entry.name,
        "fields": fields,
        "annotations": entry.annotations,
        "extra": entry.extra(),
    }
    files_own = ("slot", "publication", "slot_name", "publication_name", "await_database", "tables")
    read_only = ("tables_count", "tables_refreshed_at", "test", "url", "replication_slots")
    given = _given(entry, *files_own, *read_only) | fields
    if entry.primary is not None:
        given["primary"] = entry.primary.model_dump()
    if slots is not None:
        given["slot"] = {"name": slots[0]["slot_name"]}
        given["publication"] = {"name": slots[0]["publication_name"]}
        draft["replication_slots"] = slots
    return Wish(name=entry.name, given=given, draft=draft, once=entry.test)


def _endpoint(entry: CreateHttpEndpoint) -> Wish:
    given = _given(entry)
    return Wish(name=entry.name, given=given, draft=given)


def _sink(entry: SinkEntry) -> Wish:
    complete = SinkEntry.model_validate({**_DROPPED, **_given(entry)}, strict=False)
    read_only = ("health", "active_backfills", "active_backfill", "replication_slot_id")
    older = ("sequence_id", "message_kind", "consumer_start", "table", "schema_")
    given = _given(complete, "initial_backfill", *read_only, *older)
    selection = complete.to_draft().selection
    if selection is not None:
        given["source"] = selection.model_dump(mode="json")
    if complete.tables is not None:
        given["tables"] = [table.model_dump(mode="json") for table in complete.tables]
    given["destination"] = entry.destination.model_dump(mode="json")
    given = plain_sink(given)
    return Wish(
        name=entry.name, given=given, draft=complete.to_draft(), once=entry.initial() or None
    )


def _destination(entry: DestinationEntry) -> Wish:
    given = {"name": entry.display_name, "type": entry.type, "fields": dict(entry.fields)}
    if entry.auth_method is not None:
        given["auth_method"] = entry.auth_method
    return Wish(name=entry.display_name, given=given, draft=entry.to_draft())


def _transfer(entry: TransferEntry) -> Wish:
    draft = TransferDraft(
        name=entry.name,
        data_source_id=entry.database,
        destination_id=0,  # known by its name until it is applied
        schedule=tuple(Schedule(**each.model_dump()) for each in entry.schedule),
        settings=entry.settings,
        extra={"notification_recipients": entry.notification_recipients},
    )
    given = entry.model_dump(mode="json")
    given["settings"] = plain_settings(entry.settings)
    given["schedule"] = [each.model_dump(exclude_none=True) for each in entry.schedule]
    return Wish(name=entry.name, given=given, draft=draft)


def plain_sink(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is null, which is the same as left out; annotations are the user's own."""
    return {
        name: value if name == "annotations" else _without_nulls(value)
        for name, value in entry.items()
        if value is not None
    }


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """One form of what may be written in several, and without what goes without saying."""
    plain = {name: value for name, value in settings.items() if value not in (None, "")}
    if (table := plain.get("table")) is not None:
        plain["table"] = full_name(str(table))
        if plain.get("destination_table") == split_name(str(table))[1]:
            del plain["destination_table"]
    if columns := plain.get("columns"):
        plain["columns"] = ", ".join(part.strip() for part in str(columns).split(","))
    if plain.get("timezone") == "UTC":
        del plain["timezone"]
    if str(plain.get("max_rejects", "0")) == "0":
        plain.pop("max_rejects", None)
    return {name: str(value) for name, value in plain.items()}


def _user(entry: UserEntry) -> Wish:
    name = entry.name or entry.email or ""
    return Wish(name=name, given={"name": name}, draft=entry.role)


def _team(entry: TeamEntry) -> Wish:
    return Wish(name=entry.name, given={"name": entry.name}, draft=None)


READERS: Mapping[str, tuple[type[BaseModel], Callable[[Any], Wish]]] = {
    "teams": (TeamEntry, _team),
    "users": (UserEntry, _user),
    "databases": (DatabaseEntry, _database),
    "http_endpoints": (CreateHttpEndpoint, _endpoint),
    "sinks": (SinkEntry, _sink),
    "destinations": (DestinationEntry, _destination),
    "transfers": (TransferEntry, _transfer),
}
