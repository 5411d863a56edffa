"""Specs, reads and columns for tests, from flat fields with defaults."""

from typing import Any

from refill.connectors.kit.contract import Source
from refill.connectors.postgres.native import NativeType, make_column
from refill.domain.pipeline import Kind
from refill.domain.slice import Extent
from refill.domain.spec import DatedRead, KeyedRead, QueryRead, Read, SinkSpec, Spec, TransferSpec
from refill.domain.table import Column, Keyless, Table
from refill.planning.plan import PlanSettings, plan_table

NO_TABLE = Table(schema_name="public", name="t", columns=())
_READ = {
    *("table", "columns", "sort_columns", "start_position", "end_position"),
    *("date_column", "timezone", "query", "fields"),
}
_DEFAULTS: dict[str, Any] = {
    "database_id": "d",
    "database_type": "postgres",
    "database_name": "d",
    "sink_type": "files",
    "sink_options": {},
}
_SINK: dict[str, Any] = {"sink_id": "s"}
_TRANSFER: dict[str, Any] = {
    "dates": (),
    "transfer_id": 1,
    "destination_id": 1,
    "destination_table": "t",
}


def build_spec(kind: Kind = Kind.SINK, **fields: Any) -> Spec:
    """What is read may be given beside the rest: `table`, `sort_columns`, `date_column`, …"""
    reading = {name: fields.pop(name) for name in _READ & fields.keys()}
    if kind is Kind.SINK:
        read: Any = KeyedRead(**{"table": NO_TABLE, **reading})
        return SinkSpec(**{**_DEFAULTS, **_SINK, "read": read, **fields})
    return TransferSpec(**{**_DEFAULTS, **_TRANSFER, "read": dated_read(**reading), **fields})


def dated_read(**fields: Any) -> Read:
    if "query" in fields:
        return QueryRead(**fields)
    return DatedRead(**{"table": NO_TABLE, "date_column": "day", **fields})


def slices_of(source: Source, read: KeyedRead, settings: PlanSettings) -> list[Extent]:
    """The extents that a worker would plan, under a snapshot where the source needs one."""
    snapshot = None if read.sort_columns else source.hold_snapshot(read)
    bounds = source.bounds(read, settings.boundaries_wanted)
    table = read.table.model_copy(update={"keyless": Keyless.CUT})
    planned = plan_table(
        read.model_copy(update={"table": table}),
        bounds,
        settings,
        lambda slices: source.cut(read, bounds, slices, snapshot),
    )
    return [part.extent for part in planned]


def pg_column(name: str, type: str, oid: int, *, not_null: bool = False, **native: Any) -> Column:
    """A column as PostgreSQL's catalogue describes it."""
    return make_column(name, type, NativeType(oid=oid, **native), nullable=not not_null)
