"""The tables. Times are integer epoch microseconds, records and options are JSON text.

Indexes over several columns are in `indexes.py`.
"""

from enum import StrEnum
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    exists,
    literal_column,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows by itself only where the type is spelled INTEGER
Id = BigInteger().with_variant(Integer, "sqlite")
Time = BigInteger


def among(column: Column[Any], *words: StrEnum) -> ColumnElement[bool]:
    """Spelled out in the SQL: with a bound parameter, a partial index is not used."""
    if len(words) == 1:
        return column == literal_column(f"'{words[0].value}'")
    return column.in_([literal_column(f"'{word.value}'") for word in words])


def _number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default="0")


teams = Table(
    "teams",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    _number("claimed_at"),  # when one of its packs was last claimed
    sqlite_autoincrement=True,
)

users = Table(
    "users",
    metadata,
    Column("id", Id, primary_key=True),
    Column("team_id", Id, ForeignKey("teams.id"), nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    sqlite_autoincrement=True,
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Id, primary_key=True),
    Column("team_id", Id, ForeignKey("teams.id"), nullable=False, index=True),
    Column("user_id", Id, ForeignKey("users.id"), nullable=False),
    Column("prefix", Text, nullable=False, unique=True),
    Column("token_hash", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time),
    Column("revoked_at", Time),
    sqlite_autoincrement=True,
)

databases = Table(
    "databases",
    metadata,
    Column("id", Text, primary_key=True),
    Column("team_id", Id, ForeignKey("teams.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("options", Text, nullable=False),  # encrypted
    Column("annotations", Text, nullable=False),
    Column("replication_slots", Text, nullable=False),
    Column("extra", Text, nullable=False, server_default=""),  # encrypted; empty: none
    Column("catalogue", Text, nullable=False),
    Column("catalogue_at", Time),
    _number("tables_count"),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    UniqueConstraint("team_id", "name"),
)

endpoints = Table(
    "endpoints",
    metadata,
    Column("id", Text, primary_key=True),
    Column("team_id", Id, ForeignKey("teams.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("headers", Text, nullable=False),
    Column("encrypted_headers", Text, nullable=False),  # encrypted
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    UniqueConstraint("team_id", "name"),
)

destinations = Table(
    "destinations",
    metadata,
    Column("id", Id, primary_key=True),
    Column("team_id", Id, ForeignKey("teams.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("auth_method", Text),
    Column("options", Text, nullable=False),  # encrypted
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    UniqueConstraint("team_id", "name"),
    sqlite_autoincrement=True,
)

sinks = Table(
    "sinks",
    metadata,
    Column("id", Text, primary_key=True),
    Column("team_id", Id, ForeignKey("teams.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("database_id", Text, ForeignKey("databases.id"), nullable=False, index=True),
    Column("destination_type", Text, nullable=False),
    Column("destination_options", Text, nullable=False),  # encrypted
    Column("definition", Text, nullable=False),  # all else that no query asks for
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    UniqueConstraint("team_id", "name"),
)

transfers = Table(
    "transfers",
    metadata,
    Column("id", Id, primary_key=True),
    Column("team_id", Id, ForeignKey("teams.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("database_id", Text, ForeignKey("databases.id"), nullable=False, index=True),
    Column("destination_id", Id, ForeignKey("destinations.id"), nullable=False),
    Column("destination_table", Text, nullable=False),
    Column("definition", Text, nullable=False),  # all else that no query asks for
    Column("scheduled", Boolean, nullable=False),
    Column("paused", Boolean, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("created_user_id", Id, nullable=False),
    Column("updated_at", Time, nullable=False),
    Column("schedule_fired_at", Time),
    UniqueConstraint("team_id", "name"),
    UniqueConstraint("destination_id", "destination_table"),
    sqlite_autoincrement=True,
)

backfills = Table(
    "backfills",
    metadata,
    Column("id", Id, primary_key=True),
    Column("uid", Text, nullable=False, unique=True),
    Column("team_id", Id, ForeignKey("teams.id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("pipeline_id", Text, nullable=False),  # no foreign key: the record outlives it
    Column("pipeline_name", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("spec", Text, nullable=False),
    Column("range_start", Text),
    Column("range_end", Text),
    Column("order", Text, nullable=False),
    Column("max_concurrent", Integer),
    Column("reason", Text),
    Column("slices_planned", Integer, nullable=False),
    Column("planned", Boolean, nullable=False),
    _number("rows_estimated"),
    Column("error", Text),
    Column("error_code", Text),
    Column("created_at", Time, nullable=False),
    Column("created_user_id", Id),
    Column("updated_at", Time, nullable=False),
    Column("started_at", Time),
    Column("ended_at", Time),
    Column("paused_at", Time),
    Column("completed_at", Time),
    Column("failed_at", Time),
    Column("cancelled_at", Time),
    Column("cancelled_user_id", Id),
    Column("counters", Text),  # frozen when it ends; NULL: sum the slices
    Column("holds", Text, nullable=False),  # what it takes again on a retry
    Column("seals", Boolean, nullable=False),
    Column("shared_target", Text),  # where all slices write into one
    # the lease of whoever plans or seals it
    _number("attempt"),
    _number("failures"),
    Column("worker", Text),
    Column("lease_until", Time),
    _number("not_before"),
    _number("last_claimed_at"),
    _number("idle"),  # microseconds since it started in which it was paused, or over
    sqlite_autoincrement=True,
)

# while a sink is paused or disabled, its backfills are not claimed
WAITS_FOR_SINK = exists().where(
    sinks.c.id == backfills.c.pipeline_id, sinks.c.status != literal_column("'active'")
)

QUARANTINED = 2  # a slice that ran at so many deaths of an engine runs alone

# Present while the backfill is active: its primary key keeps two from covering the same.
holds = Table(
    "holds",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("pipeline_id", Text, primary_key=True),
    Column("hold", Text, primary_key=True),
    Column("backfill_id", Id, ForeignKey("backfills.id"), nullable=False, index=True),
)

slices = Table(
    "slices",
    metadata,
    Column("id", Id, primary_key=True),
    Column("backfill_id", Id, ForeignKey("backfills.id"), nullable=False),
    Column("index", Integer, nullable=False),
    Column("extent", Text, nullable=False),
    Column("date", Text),
    Column("target", Text, nullable=False),
    Column("state", Text, nullable=False),
    _number("attempt"),
    _number("failures"),
    Column("pack", Text),
    Column("worker", Text),
    Column("lease_until", Time),
    _number("not_before"),
    _number("rows_estimated"),
    _number("rows_read"),
    _number("rows_delivered"),
    _number("rows_filtered"),
    _number("rows_rejected"),
    _number("bytes_written"),
    Column("seconds", Float, nullable=False, server_default="0"),
    Column("error", Text),
    Column("error_code", Text),
    Column("queued_at", Time, nullable=False),
    Column("started_at", Time),
    Column("ended_at", Time),
    _number("suspicions"),  # engines that died while it ran
    UniqueConstraint("backfill_id", "index"),
    sqlite_autoincrement=True,
)

rejects = Table(
    "rejects",
    metadata,
    Column("id", Id, primary_key=True),
    Column("backfill_id", Id, ForeignKey("backfills.id"), nullable=False),
    Column("slice_id", Id, ForeignKey("slices.id"), nullable=False, index=True),
    Column("key", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("detail", Text),
    sqlite_autoincrement=True,
)

# Never pruned: a fence that began again at 1 would be refused by what the destination remembers.
targets = Table(
    "targets",
    metadata,
    Column("key", Text, primary_key=True),
    _number("fence"),
    Column("backfill_id", Id),
)

answers = Table(
    "answers",
    metadata,
    Column("team_id", Id, primary_key=True, autoincrement=False),
    Column("route", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("body_hash", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", Time, nullable=False, index=True),
)

receivers = Table(
    "receivers",
    metadata,
    Column("id", Text, primary_key=True),
    Column("team_id", Id, ForeignKey("teams.id"), nullable=False, index=True),
    Column("kind", Text),
    Column("pipeline_id", Text),
    Column("type", Text, nullable=False),
    Column("options", Text, nullable=False),  # encrypted
    Column("events", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
)

# Written with what they tell of, in one transaction; `spread` once it is known who is told.
events = Table(
    "events",
    metadata,
    Column("id", Id, primary_key=True),
    Column("team_id", Id, ForeignKey("teams.id"), nullable=False),
    Column("backfill_id", Id, nullable=False, index=True),
    Column("kind", Text, nullable=False),
    Column("pipeline_id", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("spread", Boolean, nullable=False, index=True),
    Column("created_at", Time, nullable=False, index=True),
    sqlite_autoincrement=True,
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", Id, primary_key=True),
    Column("event_id", Id, ForeignKey("events.id"), nullable=False, index=True),
    Column("team_id", Id, nullable=False),
    Column("receiver_id", Text, index=True),  # no foreign key: the record outlives it
    Column("recipients", Text, nullable=False),
    Column("state", Text, nullable=False, index=True),
    _number("attempts"),
    _number("not_before"),
    Column("error", Text),
    Column("ended_at", Time),
    sqlite_autoincrement=True,
)

# Numbers that no other table can give: claims made (whose turn it is), leases lost.
tallies = Table(
    "tallies",
    metadata,
    Column("name", Text, primary_key=True),
    _number("value"),
)

# Requests by key, wrong keys by address: in this hour. Shared by all API processes.
rates = Table(
    "rates",
    metadata,
    Column("counted", Text, primary_key=True),
    _number("hour"),
    _number("used"),
)
