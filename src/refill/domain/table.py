"""What a source's catalogue says of a table: its columns, their families, its key."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Record(BaseModel):
    """A frozen value that is stored as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Family(StrEnum):
    """What kind of values a column holds, whatever its source calls the type."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    TEXT = "text"
    BYTES = "bytes"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"  # a date and a time of day, no zone
    INSTANT = "instant"  # a point in time
    UUID = "uuid"
    JSON = "json"
    OTHER = "other"  # what only its source knows; as text, as the source prints it


DATED = frozenset({Family.DATE, Family.TIMESTAMP, Family.INSTANT})  # have a date of their own


class Comparison(StrEnum):
    """How a source compares the values of a column: as its family does, or otherwise."""

    FAMILY = "family"
    UNPADDED = "unpadded"  # blanks at the end mean nothing
    SOURCE_ONLY = "source_only"  # by rules that only the source has
    NONE = "none"  # not at all


class Column(Record):
    """A column. Everybody goes by its family; what is native belongs to its source alone."""

    name: str
    type: str  # as the source prints it, for people: "numeric(12,2)"
    family: Family
    nullable: bool = True
    comparison: Comparison = Comparison.FAMILY
    sortable: bool = True  # the source has an order of its values, to slice by
    native: Mapping[str, Any] = Field(default_factory=dict)


class TableKind(StrEnum):
    TABLE = "table"
    VIEW = "view"
    MATERIALIZED_VIEW = "materialized view"
    FOREIGN_TABLE = "foreign table"


class Keyless(StrEnum):
    """How a table is read that has no key, and no column was named to go by."""

    WHOLE = "whole"  # in one slice
    CUT = "cut"  # in parts of the source's own making
    REFUSED = "refused"  # not without a column to go by


class Table(Record):
    """A relation of a source, with the key that it can be sliced by."""

    schema_name: str
    name: str
    kind: TableKind = TableKind.TABLE
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    # a unique index over columns that are all NOT NULL, where there is no primary key
    unique_key: tuple[str, ...] = ()
    keyless: Keyless = Keyless.WHOLE
    # full names of the tables that it is a part of, all the way up: who reads one of them reads
    # its rows too
    parents: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        return f"{self.schema_name}.{self.name}"

    @property
    def key(self) -> tuple[str, ...]:
        return self.primary_key or self.unique_key

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)


def split_name(name: str) -> tuple[str, str]:
    """("schema", "table") of "schema.table", or of "table" in the schema public."""
    schema, dot, table = name.partition(".")
    return (schema, table) if dot else ("public", name)
