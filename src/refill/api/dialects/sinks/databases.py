"""Databases over HTTP."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import BaseModel, Field

from refill.api.body import Body, body_of
from refill.api.dialects.sinks.forms import (
    Count,
    Listed,
    Name,
    Text,
    listed,
    microseconds,
    seconds,
)
from refill.api.dialects.sinks.read_back import DatabaseReadBack
from refill.api.dialects.sinks.router import needs, router
from refill.api.document import SinkError, error_answer
from refill.api.gate import CallerParam, ServiceParam
from refill.api.paging import Cursor, Limit
from refill.api.route import UidParam
from refill.domain.access import Scope
from refill.domain.pipeline import Database
from refill.service import Service

_SHOWN = ("hostname", "port", "database", "username", "password", "ssl", "sslmode")
_CONNECTION = (
    *_SHOWN,
    *("ca_certificate", "client_certificate", "client_key", "weak_authentication"),
)
# as the original answers them where nobody said otherwise
_EXTRA = {"ipv6": False, "pool_size": 10, "queue_interval": 1000, "queue_target": 50}


Port = Annotated[int, Field(ge=1, le=65535)]
Kept = Annotated[int, Field(ge=1, lt=2**31)]


class ReplicationSlotInput(Body):
    """Kept for live changes; backfills need none."""

    id: Text | None = Field(None, description="made up where it is left out")
    publication_name: Text = Field(description="name of the publication")
    slot_name: Text = Field(description="name of the slot")
    status: Literal["active", "disabled"] = Field("active", description="kept, and given back")


class PrimaryInput(Body):
    """The primary of a replica. Kept for live changes; backfills read the replica itself."""

    hostname: Text = Field(description="a name or an address")
    port: Port = Field(5432, description="5432 where nobody says otherwise")
    database: Text = Field(description="name of the database on its server")
    username: Text = Field(description="user")
    password: Annotated[str, Field(max_length=1000)] | None = Field(
        None, description="password; it never comes back, and stays where it is left out"
    )
    ssl: bool = Field(False, description="encrypt the connection")
    ipv6: bool = Field(False, description="kept, and given back")


class UpdateDatabase(DatabaseReadBack):
    name: Name | None = Field(None, description="what it is called; unique in the team")
    url: Annotated[str, Field(min_length=1, max_length=2000)] | None = Field(
        None, description="instead of hostname, port, database, username and password"
    )
    hostname: Annotated[str, Field(min_length=1, max_length=255)] | None = Field(
        None, description="a name or an address, no socket path"
    )
    port: Port | None = Field(None, description="5432 where nobody says otherwise")
    database: Annotated[str, Field(min_length=1, max_length=255)] | None = Field(
        None, description="name of the database on its server"
    )
    username: Annotated[str, Field(min_length=1, max_length=255)] | None = Field(
        None, description="user"
    )
    password: Annotated[str, Field(max_length=1000)] | None = Field(
        None, description="password; a mask that was read may be sent back"
    )
    ssl: bool | None = Field(
        None, description="encrypt the connection; left out: true, but for this machine itself"
    )
    sslmode: Literal["disable", "require", "verify-ca", "verify-full"] | None = Field(
        None, description="wins over ssl; left out: verify-full with a ca_certificate, else require"
    )
    ca_certificate: Annotated[str, Field(max_length=100_000)] | None = Field(
        None, description="PEM of the authority that signed the server's certificate"
    )
    client_certificate: Annotated[str, Field(max_length=100_000)] | None = Field(
        None, description="PEM of our own certificate"
    )
    client_key: Annotated[str, Field(max_length=100_000)] | None = Field(
        None, description="PEM of its private key; never shown"
    )
    weak_authentication: bool | None = Field(
        None, description="let the server ask for the password in clear, or as MD5"
    )
    ipv6: bool | None = Field(
        None, description="kept, and given back: a name's addresses of both kinds are tried"
    )
    primary: PrimaryInput | None = Field(None, description="of a replica, its primary; kept")
    pool_size: Kept | None = Field(None, description="kept, and given back; refill has its own")
    queue_interval: Kept | None = Field(None, description="kept, and given back")
    queue_target: Kept | None = Field(None, description="kept, and given back")
    use_local_tunnel: Literal[False] | None = Field(None, description="not supported: only false")
    annotations: dict[str, Any] | None = Field(None, description="kept, and given in every message")
    replication_slots: Annotated[list[ReplicationSlotInput], Field(max_length=10)] | None = Field(
        None, description="kept for live changes; backfills need none"
    )

    def fields(self) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in _CONNECTION}
        return {name: value for name, value in given.items() if value is not None}

    def extra(self) -> dict[str, Any]:
        given: dict[str, Any] = {name: getattr(self, name) for name in _EXTRA}
        if "primary" in self.model_fields_set:
            given["primary"] = {} if self.primary is None else self.primary.model_dump()
        return {name: value for name, value in given.items() if value is not None}

    def slots(self) -> list[dict[str, Any]] | None:
        if self.replication_slots is None:
            return None
        return [slot.model_dump(exclude_none=True) for slot in self.replication_slots]


class CreateDatabase(UpdateDatabase):
    name: Name = Field(description="what it is called; unique in the team")
    test: bool = Field(True, description="connect first; false: it need not be reachable yet")


class ReplicationSlotAnswer(BaseModel):
    id: str = Field(description="UUID")
    publication_name: str = Field(description="name of the publication")
    slot_name: str = Field(description="name of the slot")
    status: str = Field(description="kept, and given back")


class PrimaryAnswer(BaseModel):
    hostname: str = Field(description="a name or an address")
    port: int = Field(description="port of the server")
    database: str = Field(description="name of the database on its server")
    username: str = Field(description="user")
    ssl: bool = Field(description="whether the connection is encrypted")
    ipv6: bool = Field(description="as it was sent")


class DatabaseAnswer(BaseModel):
    id: str = Field(description="UUID")
    name: str = Field(description="what it is called; unique in the team")
    hostname: str = Field(description="a name or an address")
    port: int = Field(description="port of the server")
    database: str = Field(description="name of the database on its server")
    username: str = Field(description="user")
    password: str = Field(description="masked")
    ssl: bool = Field(description="whether the connection is encrypted")
    sslmode: str = Field(description="disable, require, verify-ca or verify-full")
    ipv6: bool = Field(description="as it was sent")
    use_local_tunnel: bool = Field(description="always false")
    pool_size: int = Field(description="as it was sent")
    queue_interval: int = Field(description="as it was sent")
    queue_target: int = Field(description="as it was sent")
    primary: PrimaryAnswer | None = Field(description="of a replica, its primary")
    annotations: dict[str, Any] = Field(description="given in every message")
    replication_slots: list[ReplicationSlotAnswer] = Field(description="kept for live changes")
    # ours
    tables_count: Count = Field(description="how many tables were seen when they were last listed")
    tables_refreshed_at: str | None = Field(description="when its tables were last listed")
    inserted_at: str = Field(description="when it was added")
    updated_at: str = Field(description="when it was last changed")


class DeletedDatabase(BaseModel):
    id: str = Field(description="UUID of what is gone")
    success: Literal[True] = Field(description="it is gone")
    deleted: Literal[True] = Field(description="it is gone")


class Probed(BaseModel):
    success: Literal[True] = Field(description="it works")


class ProbeFailed(BaseModel):
    success: Literal[False] = Field(description="it does not work")
    reason: str = Field(description="why, in a sentence")


_PROBE: dict[str, Any] = needs(Scope.DATABASES_WRITE)
_PROBE["responses"] = {
    **_PROBE["responses"],
    422: error_answer("it does not work, and why", ProbeFailed, SinkError),
}


@router.post(
    "/postgres_databases", status_code=201, tags=["databases"], **needs(Scope.DATABASES_WRITE)
)
def create_database(
    body: Annotated[CreateDatabase, body_of(CreateDatabase)],
    uid: UidParam,
    caller: CallerParam,
    service: ServiceParam,
) -> DatabaseAnswer:
    """Adds a source, once it was connected to; with `test: false` it need not be reachable yet."""
    made = service.databases.create(
        team_id=caller.team_id,
        uid=uid,
        name=body.name,
        fields=body.fields(),
        url=body.url,
        annotations=body.annotations,
        replication_slots=body.slots() or (),
        extra=body.extra(),
        test=body.test,
    )
    return show_database(service, made)


@router.get(
    "/postgres_databases",
    tags=["databases"],
    response_model_exclude_unset=True,
    **needs(Scope.DATABASES_READ),
)
def list_databases(
    caller: CallerParam, service: ServiceParam, limit: Limit = None, cursor: Cursor = None
) -> Listed[DatabaseAnswer]:
    page = service.databases.list_all(caller.team_id, limit=limit, cursor=cursor)
    shown = [show_database(service, database) for database in page.items]
    return listed(shown, limit=limit, cursor=cursor, next_cursor=page.next_cursor)


@router.get("/postgres_databases/{database}", tags=["databases"], **needs(Scope.DATABASES_READ))
def get_database(database: str, caller: CallerParam, service: ServiceParam) -> DatabaseAnswer:
    return show_database(service, service.databases.get(caller.team_id, database))


@router.patch("/postgres_databases/{database}", tags=["databases"], **needs(Scope.DATABASES_WRITE))
@router.put("/postgres_databases/{database}", tags=["databases"], **needs(Scope.DATABASES_WRITE))
def update_database(
    database: str,
    body: Annotated[UpdateDatabase, body_of(UpdateDatabase)],
    caller: CallerParam,
    service: ServiceParam,
) -> DatabaseAnswer:
    """What is not given stays as it is."""
    updated = service.databases.update(
        team_id=caller.team_id,
        id_or_name=database,
        name=body.name,
        fields=body.fields(),
        url=body.url,
        annotations=body.annotations,
        replication_slots=body.slots(),
        extra=body.extra(),
    )
    return show_database(service, updated)


@router.delete("/postgres_databases/{database}", tags=["databases"], **needs(Scope.DATABASES_WRITE))
def delete_database(database: str, caller: CallerParam, service: ServiceParam) -> DeletedDatabase:
    """Refused while a sink or a transfer reads it."""
    gone = service.databases.delete(caller.team_id, database)
    return DeletedDatabase(id=gone.id, success=True, deleted=True)


@router.post("/postgres_databases/{database}/test_connection", tags=["databases"], **_PROBE)
def test_database(
    database: str, response: Response, caller: CallerParam, service: ServiceParam
) -> Probed | ProbeFailed:
    """Connects, and says what is wrong when it cannot."""
    return _probed(response, service.databases.test(caller.team_id, database))


@router.post("/postgres_databases/{database}/refresh_tables", tags=["databases"], **_PROBE)
def refresh_tables(
    database: str, response: Response, caller: CallerParam, service: ServiceParam
) -> Probed | ProbeFailed:
    """Reads the catalogue of its tables again."""
    return _probed(response, service.databases.refresh(caller.team_id, database))


def _probed(response: Response, reason: str | None) -> Probed | ProbeFailed:
    if reason is None:
        return Probed(success=True)
    response.status_code = 422
    return ProbeFailed(success=False, reason=reason)


def show_database(service: Service, database: Database) -> DatabaseAnswer:
    options = service.databases.shown_options(database)
    return DatabaseAnswer(
        id=database.id,
        name=database.name,
        **{name: options[name] for name in _SHOWN},
        use_local_tunnel=False,
        primary=_show_primary(database.extra.get("primary")),
        **{name: database.extra.get(name, value) for name, value in _EXTRA.items()},
        annotations=dict(database.annotations),
        replication_slots=[ReplicationSlotAnswer(**slot) for slot in database.replication_slots],
        tables_count=database.tables_count,
        tables_refreshed_at=microseconds(database.catalogue_at),
        inserted_at=seconds(database.created_at),
        updated_at=seconds(database.updated_at),
    )


def _show_primary(kept: Mapping[str, Any] | None) -> PrimaryAnswer | None:
    """The password is not among its fields, as in the original."""
    return (
        PrimaryAnswer(**{name: kept[name] for name in PrimaryAnswer.model_fields}) if kept else None
    )
