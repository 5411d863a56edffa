"""What a backfill freezes of its table: the columns, and what its slices go by."""

import re

from refill.domain.errors import Invalid, SourceChanged
from refill.domain.spec import KeyedRead, TableRead
from refill.domain.table import Column, Family, Keyless, Table

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")


def freeze_keyed(read: KeyedRead, table: Table) -> KeyedRead:
    """The read with the table as the catalogue has it. Invalid, by field, when it cannot be read
    that way. `read.sort_columns` holds what was asked for, or nothing."""
    sort_columns = read.sort_columns or table.key
    for name in sort_columns:
        _check_sortable(table, name)
    if not sort_columns and table.keyless is Keyless.REFUSED:
        raise Invalid.of(
            "sort_column", f"is required: {table.full_name} is a {table.kind} with no key"
        )
    _check_positions(read, table, sort_columns)
    return read.model_copy(
        update={
            "table": table,
            "columns": tuple(column.name for column in table.columns),
            "sort_columns": sort_columns,
        }
    )


def freeze_named(read: TableRead, table: Table, *needed: str) -> TableRead:
    """The read with the table as the catalogue has it, its columns as they were named, or all.
    SourceChanged when one of them, or of those that are `needed` beside, is not there."""
    for name in sorted({*read.columns, *needed}):
        if table.column(name) is None:
            raise SourceChanged(
                f"{table.full_name} has no column {name}; mend the transfer, then start again."
            )
    columns = read.columns or tuple(column.name for column in table.columns)
    return read.model_copy(update={"table": table, "columns": columns})


def _check_sortable(table: Table, name: str) -> None:
    column = table.column(name)
    if column is None:
        raise Invalid.of("sort_column", f"{table.full_name} has no column {name}")
    if not column.sortable:
        raise Invalid.of("sort_column", f"{name} is of type {column.type}, which has no order")


def _check_positions(read: KeyedRead, table: Table, sort_columns: tuple[str, ...]) -> None:
    given = {
        field: position
        for field, position in (
            ("start_position", read.start_position),
            ("end_position", read.end_position),
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
    if column is None or column.family is not Family.INTEGER:
        return  # only the source itself can read and order the others
    numbers = {field: _integer(field, position, column) for field, position in given.items()}
    if len(numbers) == 2 and numbers["start_position"] > numbers["end_position"]:
        raise Invalid.of("start_position", "is after the end_position")


def _integer(field: str, position: str, column: Column) -> int:
    if not _INTEGER.fullmatch(position):
        raise Invalid.of(field, f"{column.name} is {column.type}; give a whole number")
    return int(position)
