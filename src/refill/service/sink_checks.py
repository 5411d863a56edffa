"""What must hold for a sink: its tables, the columns of its filter, its SQL, its place."""

from collections.abc import Iterable, Mapping

from refill.connectors.kit.contract import Connector
from refill.domain.errors import Invalid
from refill.domain.pipeline import Condition, Database, Operator, Sink
from refill.domain.table import Table
from refill.planning.conditions import check_filter
from refill.service.catalogue import Catalogue, pick
from refill.service.selection import covers, full_name, named_tables, overlap
from refill.service.sink_sql import check_message, group_columns
from refill.store.port import PipelineStore


class SinkChecks:
    """Against the catalogue; what a source that is down could not tell is accepted."""

    def __init__(
        self,
        *,
        store: PipelineStore,
        catalogue: Catalogue,
        connectors: Mapping[str, Connector],
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._connectors = connectors

    def check(self, sink: Sink, database: Database) -> None:
        stored = self._catalogue.stored(database)
        tables = self._named(sink, database, stored)
        self._check_groups(sink, tables)
        for condition in sink.filter:
            check_condition(condition)
            self._check_column(condition, sink, stored, tables)
        for named in tables:
            check_filter(sink.filter, named.columns)
        if sink.transform is not None:
            for table in tables or (None,):
                groups = () if table is None else group_columns(sink, table)
                check_sql(sink.transform, table, groups)
        known = self._connectors
        check_message(sink, known.get(database.type), known.get(sink.destination_type), tables)
        self._check_place(sink)

    def _named(
        self, sink: Sink, database: Database, stored: tuple[Table, ...]
    ) -> tuple[Table, ...]:
        """The tables that the sink names, all of them known to be there."""
        found: dict[str, Table] = {}
        names = [("source.include_tables", name) for name in named_tables(sink.selection) or ()]
        names += [("tables", full_name(table.name)) for table in sink.tables]
        for field, name in names:
            if name in found:
                continue
            if not covers(sink.selection, name):
                raise Invalid.of(field, f"{name} is not among the tables of the sink's source")
            table = pick(stored, name) or self._catalogue.find_now(database, name)
            if table is None:
                raise Invalid.of(field, f"{database.name} has no table {name}")
            found[name] = table
        return tuple(table for table in found.values() if table.columns)

    def _check_groups(self, sink: Sink, tables: Iterable[Table]) -> None:
        known = {table.full_name: table for table in tables}
        for configured in sink.tables:
            table = known.get(full_name(configured.name))
            for name in configured.group_column_names or ():
                if table is not None and table.column(name) is None:
                    raise Invalid.of("tables", f"{table.full_name} has no column {name}")

    def _check_column(
        self,
        condition: Condition,
        sink: Sink,
        stored: tuple[Table, ...],
        tables: tuple[Table, ...],
    ) -> None:
        name = condition.column_name
        for table in tables:
            if table.column(name) is None:
                raise Invalid.of("filter", f"{table.full_name} has no column {name}")
        covered = [table for table in stored if covers(sink.selection, table.full_name)]
        # a sink over whole schemas: each backfill checks again against its own table
        if not tables and covered and all(table.column(name) is None for table in covered):
            raise Invalid.of("filter", f"none of the sink's tables has a column {name}")

    def _check_place(self, sink: Sink) -> None:
        """Two sinks that replace the same files would throw away each other's."""
        connector = self._connectors.get(sink.destination_type)
        option = connector.alone_at if connector else None
        if option is None:
            return
        place = (sink.destination_type, sink.destination_options.get(option))
        for other in self._store.list_sinks(sink.team_id):
            theirs = (other.destination_type, other.destination_options.get(option))
            if other.id != sink.id and theirs == place and overlap(sink.selection, other.selection):
                raise Invalid.of(
                    f"destination.{option}",
                    f"the sink {other.name} writes the same tables there; choose another {option}",
                )


def check_condition(condition: Condition) -> None:
    """The value must fit the operator."""
    value, operator = condition.comparison_value, condition.operator
    if operator in (Operator.IS_NULL, Operator.IS_NOT_NULL):
        if value is not None:
            raise Invalid.of("filter", f"{operator.value} takes no comparison_value")
    elif operator in (Operator.IN, Operator.NOT_IN):
        if not isinstance(value, list) or not value or any(map(_not_scalar, value)):
            raise Invalid.of("filter", f"{operator.value} needs a list of plain values")
    elif _not_scalar(value):
        raise Invalid.of("filter", f"{operator.value} needs one plain comparison_value")


def check_sql(sql: str, table: Table | None, groups: Iterable[str] = ()) -> None:
    """One SELECT, row by row, that keeps the key and what groups the messages; its columns, where
    the table is known."""
    from refill.guards.transform import check_transform  # the parser is slow to import

    columns = [] if table is None else [column.name for column in table.columns]
    keep = () if table is None else (*table.key, *(n for n in groups if n not in table.key))
    check_transform(sql, columns, row_by_row=True, keep=keep)


def _not_scalar(value: object) -> bool:
    return not isinstance(value, str | int | float | bool)
