"""What a sink sends and where to, as a backfill freezes it: its SQL made one, its path, its groups.

The parser of SQL is slow to import: only who uses it waits for it.
"""

from collections.abc import Sequence
from typing import Any

from refill.connectors.kit.contract import Connector
from refill.domain.errors import Invalid
from refill.domain.pipeline import Sink
from refill.domain.table import Table
from refill.service.selection import full_name

_PARTS = ("record", "changes", "action", "metadata")


def group_columns(sink: Sink, table: Table) -> tuple[str, ...]:
    """What the table's messages are grouped by, where the sink says it."""
    for configured in sink.tables:
        if full_name(configured.name) == table.full_name:
            return tuple(configured.group_column_names or ())
    return ()


def check_message(
    sink: Sink, source: Connector | None, connector: Connector | None, tables: Sequence[Table]
) -> None:
    """That a path, a routing and an enrichment say something that this sink can do."""
    given = {"transform": sink.message_path, "routing": sink.routing, "enrichment": sink.enrichment}
    for field, text in given.items():
        if text is not None and connector is not None and connector.routes is None:
            raise Invalid.of(field, f"{connector.title} takes rows, and this is about messages")
    for table in tables or (None,):
        _check_for(sink, source, connector, table)


def _check_for(
    sink: Sink, source: Connector | None, connector: Connector | None, table: Table | None
) -> None:
    if sink.message_path is not None:
        _check_path(sink.message_path, table)
    columns = [] if table is None else [column.name for column in table.columns]
    if sink.routing is not None or sink.filter_sql is not None:
        from refill.guards import sink_sql

        if sink.routing is not None:
            fields = (connector.routes if connector else None) or ()
            sink_sql.check_routing(sink.routing, columns, fields)
            sink_sql.check_no_hidden(columns)
        if sink.filter_sql is not None:
            sink_sql.check_filter_sql(sink.filter_sql, columns)
    if sink.enrichment is not None:
        _check_enrichment(sink.enrichment, table, source)


def _check_path(path: str, table: Table | None) -> None:
    head, _, rest = path.partition(".")
    if head not in _PARTS or (head in ("changes", "action") and rest):
        raise Invalid.of("transform", f"path must begin with one of: {', '.join(_PARTS)}")
    if head == "record" and rest and table is not None and table.column(rest) is None:
        raise Invalid.of(
            "transform",
            f"{table.full_name} has no column {rest}; for what is inside a column write "
            '{"sql": "select …, get_json_object(column, \'$.name\') as message from source"}',
        )


def _check_enrichment(sql: str, table: Table | None, source: Connector | None) -> None:
    from refill.guards.query import check_keyed_query

    if source is not None and source.query_dialect is not None:
        check_keyed_query(sql, source.query_dialect)
    if table is not None and len(table.key) != 1:
        raise Invalid.of(
            "enrichment", f"goes by a key of one column; {table.full_name} has {len(table.key)}"
        )


def frozen_sql(sink: Sink, table: Table) -> dict[str, Any]:
    """The fields of a spec that the sink's filter, transform and routing make."""
    found: dict[str, Any] = {
        "filter": sink.filter,
        "transform": sink.transform,
        "message_path": sink.message_path,
        "group_columns": group_columns(sink, table),
        "enrichment": sink.enrichment,
    }
    if sink.transform is None and sink.filter_sql is None and sink.routing is None:
        return found
    from refill.guards import sink_sql

    condition = sink.filter_sql
    if condition is not None and table.columns:
        simple = sink_sql.simple_conditions(condition, table.columns)
        if simple is not None:
            found["filter"] = (*sink.filter, *simple)
            condition = None
    if sink.transform is not None:
        found["message_column"] = sink_sql.message_form(sink.transform)
    found["transform"] = sink_sql.compose(sink.transform, condition, sink.routing)
    return found
