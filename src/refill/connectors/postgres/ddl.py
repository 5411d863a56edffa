"""The table that is written: as it is at the destination, or as it is made there when absent."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from refill.connectors.kit.contract import Job
from refill.connectors.kit.fields import note_of
from refill.connectors.postgres.native import SYSTEM
from refill.connectors.postgres.options import PostgresOptions, transfer_target
from refill.connectors.postgres.quoting import identifier, literal, names, qualified
from refill.connectors.postgres.sink_errors import reason_of, sqlstate
from refill.connectors.postgres.sink_session import SinkSession
from refill.connectors.postgres.type_names import type_sql
from refill.domain.errors import Invalid, SinkRefused
from refill.domain.spec import SinkSpec, Spec, TableRead, TransferSpec
from refill.domain.table import Family, split_name

if TYPE_CHECKING:
    import pyarrow as pa

# Added to a transfer's table whose rows do not say their date by a column of type date.
DATE_COLUMN = "_refill_date"

_NO_SUCH_TYPE = {"42704", "3F000"}

_COLUMNS = """
SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), t.typname::text, t.typtype::text
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = to_regclass({}) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
_UNIQUE = """
SELECT array_to_string(array_agg(a.attname::text ORDER BY a.attname), E'\\x01')
FROM pg_index i
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, position)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = to_regclass({}) AND i.indisunique AND i.indisvalid AND i.indimmediate
  AND i.indpred IS NULL AND i.indexprs IS NULL AND k.position <= i.indnkeyatts
GROUP BY i.indexrelid
"""


@dataclass(frozen=True, slots=True)
class TargetColumn:
    name: str
    type: str  # as format_type prints it
    type_name: str  # pg_type.typname
    kind: str  # pg_type.typtype


@dataclass(frozen=True, slots=True)
class Target:
    """Where the rows go, and how a repeat is recognised."""

    schema: str
    name: str
    columns: dict[str, TargetColumn]
    key: tuple[str, ...]  # what an upsert goes by; empty: rows are inserted
    date_column: str | None  # what a transfer's date is deleted by

    @property
    def sql(self) -> str:
        return qualified(self.schema, self.name)

    @property
    def shown(self) -> str:
        return f"{self.schema}.{self.name}"


def target_name(options: PostgresOptions, spec: Spec) -> tuple[str, str]:
    """(schema, table)."""
    if isinstance(spec, TransferSpec):
        return transfer_target(options, spec.destination_table)
    if options.table is None:
        return spec.read.table.schema_name, spec.read.table.name
    return split_name(options.table)


def key_of(spec: Spec, schema: "pa.Schema") -> tuple[str, ...]:
    """The source's key, where the rows still are the source's rows and carry all of it."""
    key = source_key(spec)
    if spec.transform and isinstance(spec, TransferSpec):
        return ()
    return key if set(key) <= set(schema.names) else ()


def source_key(spec: Spec) -> tuple[str, ...]:
    return spec.read.table.key if isinstance(spec.read, TableRead) else ()


def date_column_of(spec: Spec, schema: "pa.Schema") -> str | None:
    """A column of type date that is the very date of the slice; else one that refill adds."""
    if not isinstance(spec, TransferSpec):
        return None
    name = spec.read.date_column
    if name is None or name not in schema.names or spec.transform:
        return DATE_COLUMN
    note = note_of(schema.field(name))
    # a domain over date has a name of its own
    is_date = note.family is Family.DATE and note.type_in(SYSTEM) in (None, "date")
    return name if is_date else DATE_COLUMN


def ensure_target(
    session: SinkSession, schema: str, name: str, job: Job, rows: "pa.Schema"
) -> None:
    """Makes what is absent. Creating is serialised: two workers may begin a backfill at once."""
    import adbc_driver_manager

    session.execute("SELECT pg_advisory_xact_lock(hashtextextended('refill:ddl', 0))")
    if session.row(f"SELECT 1 FROM pg_namespace WHERE nspname = {literal(schema)}") is None:
        session.execute(f"CREATE SCHEMA {identifier(schema)}")
    sql = qualified(schema, name)
    if session.row(f"SELECT 1 WHERE to_regclass({literal(sql)}) IS NOT NULL"):
        return
    key, day = key_of(job.spec, rows), date_column_of(job.spec, rows)
    parts = [f"{identifier(field.name)} {_type_sql(field)}" for field in rows]
    if day == DATE_COLUMN:
        parts.append(f"{identifier(day)} date NOT NULL")
    if key:
        parts.append(f"PRIMARY KEY ({', '.join(names(key))})")
    try:
        session.execute(f"CREATE TABLE {sql} ({', '.join(parts)})")
    except adbc_driver_manager.Error as error:
        if sqlstate(error) not in _NO_SUCH_TYPE:
            raise
        raise SinkRefused(
            f"The table {schema}.{name} cannot be made: {reason_of(error)} at the destination; "
            "create it there (an extension, an enum, a domain), or make the table yourself."
        ) from error
    if day is not None:
        session.execute(f"CREATE INDEX ON {sql} ({identifier(day)})")


def read_target(
    session: SinkSession, schema: str, name: str, job: Job, rows: "pa.Schema"
) -> Target:
    """The table as it is now; SinkRefused when the rows cannot go there."""
    sql = literal(qualified(schema, name))
    columns = {row[0]: TargetColumn(*row) for row in session.rows(_COLUMNS.format(sql))}
    if not columns:
        raise SinkRefused(f"The table {schema}.{name} is not at the destination any more.")
    missing = [field.name for field in rows if field.name not in columns]
    if missing:
        raise SinkRefused(
            f"The table {schema}.{name} has no column {', '.join(missing)}: add it there, "
            "or leave it out of the pipeline."
        )
    key, day = key_of(job.spec, rows), date_column_of(job.spec, rows)
    unique = {frozenset(row[0].split("\x01")) for row in session.rows(_UNIQUE.format(sql))}
    if key and frozenset(key) not in unique:
        if isinstance(job.spec, SinkSpec):
            raise SinkRefused(
                f"The table {schema}.{name} has no unique key on ({', '.join(key)}), by which rows "
                "are recognised: add one there."
            )
        key = ()
    if day is not None and day not in columns:
        raise SinkRefused(
            f"The table {schema}.{name} has no column {day}, by which a date is replaced: add it "
            f"there (ALTER TABLE … ADD COLUMN {day} date), or let refill make the table."
        )
    return Target(schema, name, columns, key, day)


# For columns that come from a query or a transform, which no catalogue describes.
_BY_ARROW = {
    "bool": "boolean",
    "int8": "smallint",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "large_string": "text",
    "binary": "bytea",
    "large_binary": "bytea",
    "date32[day]": "date",
    "timestamp[us]": "timestamp without time zone",
}


def _type_sql(field: "pa.Field[Any]") -> str:
    try:
        return type_sql(column_type(field))
    except Invalid as error:
        raise SinkRefused(
            f"The column {field.name!r} cannot be made: {error.message} Make the table yourself."
        ) from error


def column_type(field: "pa.Field[Any]") -> str:
    """The source's own type where it is known, in the source's own words, which are never SQL here;
    else the one that holds the Arrow type exactly."""
    known = note_of(field).type_in(SYSTEM)
    if known:
        return known
    arrow = str(field.type)
    if arrow.startswith("timestamp[us, tz="):
        return "timestamp with time zone"
    if decimal := re.fullmatch(r"decimal\d+\((\d+), (-?\d+)\)", arrow):
        return f"numeric({decimal[1]},{decimal[2]})"
    if arrow not in _BY_ARROW:
        raise SinkRefused(
            f"The column {field.name!r} is of the type {arrow}, which has no counterpart in "
            "PostgreSQL: cast it in the transform, to a string for instance."
        )
    return _BY_ARROW[arrow]
