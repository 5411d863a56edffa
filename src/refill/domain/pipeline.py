"""Pipelines and what they connect: databases, destinations, sinks, transfers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from refill.domain.table import Record


class Kind(StrEnum):
    """Which kind of pipeline a backfill runs through."""

    SINK = "sink"
    TRANSFER = "transfer"


class Operator(StrEnum):
    EQ = "="
    NE = "!="
    GT = ">"
    GE = ">="
    LT = "<"
    LE = "<="
    IN = "in"
    NOT_IN = "not in"
    IS_NULL = "is null"
    IS_NOT_NULL = "is not null"


class Condition(Record):
    """One condition of a sink's filter; all conditions must hold."""

    column_name: str
    operator: Operator
    comparison_value: Any = None
    field_path: str | None = None  # inside a JSON column: names, and numbers of elements, by dots


class Selection(Record):
    """Which tables of a database a sink covers. None: no restriction."""

    include_schemas: tuple[str, ...] | None = None
    exclude_schemas: tuple[str, ...] | None = None
    include_tables: tuple[str, ...] | None = None
    exclude_tables: tuple[str, ...] | None = None


class SinkTable(Record):
    name: str
    group_column_names: tuple[str, ...] | None = None


class Schedule(Record):
    """When a transfer runs by itself, and how many dates before today it refreshes."""

    run_interval: str  # as the vendor's client names them
    run_hour: int | None = None  # UTC
    refresh_window: int = 1  # days
    run_weekday: int | None = None
    run_day: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A source connection. `options` validate against its connector's options model."""

    id: str
    team_id: int
    name: str
    type: str  # the connector: "postgres"
    options: Mapping[str, Any]  # secrets in clear here, encrypted in the store
    annotations: Mapping[str, Any] = field(default_factory=dict)
    replication_slots: tuple[Mapping[str, Any], ...] = ()
    # what the dialect takes and gives back, and backfills do not read: primary, ipv6, pool_size,
    # queue_interval, queue_target; with the primary's password, and encrypted in the store
    extra: Mapping[str, Any] = field(default_factory=dict)
    # of its catalogue, which is kept apart: it is by far the biggest thing about a database
    tables_count: int = 0
    catalogue_at: datetime | None = None
    created_at: datetime
    updated_at: datetime

    def __repr__(self) -> str:
        return f"Database(id={self.id!r}, name={self.name!r}, type={self.type!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpEndpoint:
    id: str
    team_id: int
    name: str
    url: str
    headers: Mapping[str, str]
    encrypted_headers: Mapping[str, str]
    created_at: datetime
    updated_at: datetime

    def __repr__(self) -> str:
        return f"HttpEndpoint(id={self.id!r}, name={self.name!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where transfers write."""

    id: int
    team_id: int
    name: str
    type: str
    auth_method: str | None = None
    options: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime

    def __repr__(self) -> str:
        return f"Destination(id={self.id!r}, name={self.name!r}, type={self.type!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """A pipeline: tables of a database → messages or rows in a system."""

    id: str
    team_id: int
    name: str
    status: str = "active"  # active, disabled, paused
    database_id: str
    selection: Selection = field(default_factory=Selection)
    tables: tuple[SinkTable, ...] = ()
    actions: tuple[str, ...] = ("insert", "update", "delete")
    destination_type: str
    destination_options: Mapping[str, Any]
    batch_size: int | None = None
    filter: tuple[Condition, ...] = ()
    filter_sql: str | None = None  # a condition in Spark SQL, instead of `filter`
    transform: str | None = None  # Spark SQL over the view `source`
    message_path: str | None = None  # the part of a message that is sent alone
    routing: str | None = None  # Spark SQL of the fields that the system has
    enrichment: str | None = None  # a query of the source, with :keys
    timestamp_format: str = "iso8601"
    numeric_format: str = "string"  # or "number": how messages write numeric
    max_retry_count: int | None = None
    max_rejects: int = 0  # per backfill; more fail the slice
    annotations: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime
    updated_at: datetime

    def __repr__(self) -> str:
        return f"Sink(id={self.id!r}, name={self.name!r}, destination={self.destination_type!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """A pipeline: dated data of a source → a destination, one run per date."""

    id: int
    team_id: int
    name: str
    database_id: str
    destination_id: int
    destination_table: str
    # exactly one of table ("schema.name") and query (with a bound :date)
    table: str | None = None
    query: str | None = None
    date_column: str | None = None
    timezone: str = "UTC"
    columns: tuple[str, ...] = ()  # empty: all
    transform: str | None = None
    schedule: tuple[Schedule, ...] = ()
    paused: bool = False
    max_rejects: int = 0
    # what the dialect accepts and gives back, and the core does not read:
    # schema_id, accounts, segments, transfer_type, notification_recipients
    extra: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime
    created_user_id: int
    updated_at: datetime
    schedule_fired_at: datetime | None = None
