"""The SQL of a slice: one query, made of the frozen columns and of literals."""

from collections.abc import Sequence
from datetime import date, timedelta

from refill.connectors.postgres.native import NativeType, Pages
from refill.connectors.postgres.quoting import bind_date, identifier, literal, names, qualified, row
from refill.connectors.postgres.type_names import type_sql
from refill.connectors.postgres.types import form_of
from refill.domain.errors import Misconfigured
from refill.domain.slice import Dated, Extent, KeyRange, NativeExtent, NullKeys, Whole
from refill.domain.spec import DatedRead, KeyedRead, QueryRead, Read, TableRead
from refill.domain.table import Column, Family

DAY = "refill day"  # the column that tells the dates of one query apart


def relation_name(read: TableRead) -> str:
    return qualified(read.table.schema_name, read.table.name)


def slice_query(read: Read, extent: Extent) -> str:
    """The rows of one slice."""
    chosen = select_list(read.fields)
    match read, extent:
        case QueryRead(), Dated():
            return f"SELECT {chosen} FROM ({bind_date(read.query, extent.date)}\n) AS source"
        case KeyedRead(), NativeExtent():
            pages = Pages.of(extent)
            # of a parent its own pages: each child has slices of its own
            relation, found = f"ONLY {pages.relation}", _page_conditions(pages)
        case DatedRead(), Dated():
            relation, found = relation_name(read), _date_conditions(read, extent.date)
        case KeyedRead(), KeyRange():
            relation, found = relation_name(read), key_conditions(read, extent)
        case KeyedRead(), NullKeys():
            nulls = " OR ".join(null_test(read, name, "IS NULL") for name in read.sort_columns)
            relation, found = relation_name(read), [nulls]
        case KeyedRead(), Whole():
            relation, found = relation_name(read), []
        case _:
            raise Misconfigured(f"PostgreSQL does not read {read.name} by {extent.kind}.")
    return f"SELECT {chosen} FROM {relation}{where(found)}"


def dates_query(read: DatedRead, first: date, last: date, *, newest_first: bool) -> str:
    """The rows of a run of dates, in their order, each with the number of its date: 1 is `first`.

    The database tells them apart by the same edges that bound a single date, so that one query
    and many see the same rows.
    """
    days = (last - first).days + 1
    column = identifier(read.date_column)
    edges = ", ".join(_edge(read, first + timedelta(days=day)) for day in range(days))
    within = where([f"{column} >= {_edge(read, first)}", f"{column} < {_edge(read, last, 1)}"])
    return (
        f"SELECT {select_list(read.fields)}, "
        f"width_bucket({column}, ARRAY[{edges}]) AS {identifier(DAY)} "
        f"FROM {relation_name(read)}{within} "
        f"ORDER BY {column}{' DESC' if newest_first else ''}"
    )


def _page_conditions(pages: Pages) -> list[str]:
    found = [f"ctid >= '({pages.first_page},0)'::tid"]
    if pages.end_page is not None:
        found.append(f"ctid < '({pages.end_page},0)'::tid")
    return found


def _date_conditions(read: DatedRead, day: date) -> list[str]:
    column = identifier(read.date_column)
    return [f"{column} >= {_edge(read, day)}", f"{column} < {_edge(read, day, 1)}"]


def key_conditions(read: KeyedRead, extent: KeyRange) -> list[str]:
    """A row comparison per side. A row with a NULL in a later part of the key can still compare
    as true: such rows belong to the rest slice alone."""
    found = []
    if extent.lower is not None:
        sign = ">=" if extent.lower_inclusive else ">"
        found.append(_compare(read, sign, extent.lower))
    if extent.upper is not None:
        found.append(_compare(read, "<=", extent.upper))
    for name in read.sort_columns:
        column = read.table.column(name)
        if column is None or column.nullable:
            found.append(null_test(read, name, "IS NOT NULL"))
    return found


def null_test(read: KeyedRead, name: str, test: str) -> str:
    """A composite with a NULL in it is neither IS NULL nor IS NOT NULL: there, asked otherwise."""
    column = read.table.column(name)
    if column is not None and NativeType.of(column).kind in ("c", "d"):
        distinct = {"IS NULL": "IS NOT DISTINCT FROM", "IS NOT NULL": "IS DISTINCT FROM"}
        test = f"{distinct[test]} NULL"
    return f"{identifier(name)} {test}"


def _compare(read: KeyedRead, sign: str, values: Sequence[str]) -> str:
    # a start or an end may name the first part of the key only
    columns = read.sort_columns[: len(values)]
    literals = [
        _key_literal(read, name, value) for name, value in zip(columns, values, strict=True)
    ]
    return f"{row(names(columns))} {sign} {row(literals)}"


def _key_literal(read: KeyedRead, name: str, value: str) -> str:
    column = read.table.column(name)
    if column is not None and NativeType.of(column).kind == "c":
        # composites compare as records, and an untyped record cannot be read from text
        return f"{literal(value)}::{type_sql(column.type)}"
    return literal(value)


def where(found: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(f'({condition})' for condition in found)}" if found else ""


def select_list(columns: Sequence[Column]) -> str:
    if not columns:
        raise Misconfigured("A table without columns has nothing to read.")
    return ", ".join(
        f"{form_of(column).select.format(identifier(column.name))} AS {identifier(column.name)}"
        for column in columns
    )


def _edge(read: DatedRead, day: date, later: int = 0) -> str:
    """The first value of a date in the column's own type, so that an index on it is used.

    Days are added by the database: the last date that Python knows has a day after it too.
    """
    start = f"(DATE '{day.isoformat()}' + {later})" if later else f"DATE '{day.isoformat()}'"
    column = read.table.column(read.date_column)
    match column.family if column else None:
        case Family.DATE:
            return start
        case Family.TIMESTAMP:
            return f"{start}::timestamp"
        case Family.INSTANT:
            return f"({start}::timestamp AT TIME ZONE {literal(read.timezone)})"
        case _:
            kind = f"is {column.type}" if column else "is not there"
            raise Misconfigured(
                f"The date column {read.date_column!r} {kind}; it must be a date or a timestamp."
            )
