"""What a backfill freezes of its table: the columns, their types, and what its slices go by."""

import re

from refill.domain.errors import Invalid
from refill.domain.pipeline import Spec
from refill.domain.table import Column, Table

# relations without pages of their own to go through: they need a column to go by
_NO_PAGES = {"v": "a view", "m": "a materialized view", "f": "a foreign table"}
_UNSORTABLE = frozenset(
    {"json", "xml", "point", "line", "lseg", "box", "path", "polygon", "circle", "refcursor"}
)
_INTEGERS = frozenset({"smallint", "integer", "bigint"})
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")


def freeze_table(spec: Spec, table: Table) -> Spec:
    """The spec with the table as the catalogue has it. Invalid, by field, when it cannot be read
    that way. `spec.sort_columns` holds what was asked for, or nothing."""
    sort_columns = spec.sort_columns or table.key
    for name in sort_columns:
        _check_sortable(table, name)
    if not sort_columns and table.kind in _NO_PAGES:
        raise Invalid.of(
            "sort_column", f"is required: {table.full_name} is {_NO_PAGES[table.kind]} with no key"
        )
    _check_positions(spec, table, sort_columns)
    for condition in spec.filter:
        if table.column(condition.column_name) is None:
            raise Invalid.of("filter", f"{table.full_name} has no column {condition.column_name}")
    return spec.model_copy(
        update={
            "table": table,
            "columns": tuple(column.name for column in table.columns),
            "sort_columns": sort_columns,
        }
    )


def _check_sortable(table: Table, name: str) -> None:
    column = table.column(name)
    if column is None:
        raise Invalid.of("sort_column", f"{table.full_name} has no column {name}")
    if column.type in _UNSORTABLE:
        raise Invalid.of("sort_column", f"{name} is of type {column.type}, which has no order")


def _check_positions(spec: Spec, table: Table, sort_columns: tuple[str, ...]) -> None:
    given = {
        field: position
        for field, position in (
            ("start_position", spec.start_position),
            ("end_position", spec.end_position),
        )
        if position is not None
    }
    if not given:
        return
    if len(sort_columns) != 1:
        why = "has a key of several columns" if sort_columns else "has no key"
        raise Invalid.of(
            "sort_column", f"is required with a start or an end: {table.full_name} {why}"
        )
    column = table.column(sort_columns[0])
    if column is None or column.type not in _INTEGERS:
        return  # only the database itself can read and order the others
    numbers = {field: _integer(field, position, column) for field, position in given.items()}
    if len(numbers) == 2 and numbers["start_position"] > numbers["end_position"]:
        raise Invalid.of("start_position", "is after the end_position")


def _integer(field: str, position: str, column: Column) -> int:
    if not _INTEGER.fullmatch(position):
        raise Invalid.of(field, f"{column.name} is {column.type}; give a whole number")
    return int(position)
