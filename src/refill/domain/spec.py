"""What a backfill froze when it was created: later edits do not reach into it.

How to reach a system (host, user, password) is read live when a slice runs, so that a rotated
password mends a failed backfill; what is read and written is frozen here.
"""

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import Field

from refill.domain.errors import SourceChanged
from refill.domain.pipeline import Condition, Kind
from refill.domain.table import Column, Record, Table


class TableRead(Record):
    """Columns of a table, as the catalogue had it."""

    table: Table
    columns: tuple[str, ...] = ()  # what is read, in order; empty: all

    @property
    def name(self) -> str:
        return self.table.full_name

    @property
    def fields(self) -> tuple[Column, ...]:
        """The columns that are read, in order; none while the source could not be asked."""
        if not self.columns or not self.table.columns:
            return self.table.columns
        found = [(name, self.table.column(name)) for name in self.columns]
        for name, column in found:
            if column is None:
                raise SourceChanged(f"{self.name} has no column {name!r}.")
        return tuple(column for _, column in found if column is not None)


class KeyedRead(TableRead):
    """A table by ranges of a key, or, without one, in parts of the source's own."""

    kind: Literal["keyed"] = "keyed"
    sort_columns: tuple[str, ...] = ()
    start_position: str | None = None  # inclusive, as text
    end_position: str | None = None

    @property
    def partial(self) -> bool:
        return self.start_position is not None or self.end_position is not None


class DatedRead(TableRead):
    """A table by the dates of one of its columns."""

    kind: Literal["dated"] = "dated"
    date_column: str
    timezone: str = "UTC"  # which instant begins a date


class QueryRead(Record):
    """A query with a bound :date."""

    kind: Literal["query"] = "query"
    query: str
    fields: tuple[Column, ...] = ()  # what it returns; none while the source could not be asked
    date_column: str | None = None  # the one among them that is the date itself, if any

    @property
    def name(self) -> str:
        return "the query"


Read = KeyedRead | DatedRead | QueryRead


class _AnySpec(Record):
    """What the specs of both kinds have: a source, what is between, a sink."""

    database_id: str
    database_type: str
    database_name: str  # the name refill knows it by
    filter: tuple[Condition, ...] = ()
    transform: str | None = None
    sink_type: str
    sink_options: Mapping[str, Any]  # without the connector's live fields
    timestamp_format: str = "iso8601"
    max_rejects: int = 0
    max_retry_count: int | None = None  # of a slice; None: as the worker is set
    max_rows_per_second: int | None = None


# columns beside the record's own, which what a sink asks for adds: no table has such names
HIDDEN = "__refill_"
ROUTE = HIDDEN + "route_"
ENRICHMENT = HIDDEN + "enrichment"
MESSAGE = "message"  # the column of a sink's SQL that is the whole message


class SinkSpec(_AnySpec):
    """All rows of a table, or a range of its key, into a sink."""

    kind: Literal[Kind.SINK] = Kind.SINK
    read: KeyedRead
    sink_id: str
    batch_size: int | None = None
    # backfills that were frozen before there was a choice go on with numbers
    numeric_format: str = "number"
    group_columns: tuple[str, ...] = ()  # what makes the message key, instead of the primary key
    message_path: str | None = None  # the part of the message that is sent alone
    # the SQL's column `message` is sent alone: a value, or text that is JSON already
    message_column: Literal["value", "json"] | None = None
    enrichment: str | None = None  # a query of the source, with :keys
    # for messages: {"consumer": {...}, "database": {...}} as they stand in the metadata
    message: Mapping[str, Any] = Field(default_factory=dict)


class TransferSpec(_AnySpec):
    """Dates of a table or a query into a destination's table."""

    kind: Literal[Kind.TRANSFER] = Kind.TRANSFER
    read: Annotated[DatedRead | QueryRead, Field(discriminator="kind")]
    dates: tuple[date, ...]  # in the order they run
    transfer_id: int
    destination_id: int
    destination_table: str


Spec = SinkSpec | TransferSpec
