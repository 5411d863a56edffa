"""The SQL of a slice: one query, made of the frozen columns and of literals."""

from collections.abc import Sequence
from datetime import date, timedelta

from refill.connectors.postgres.quoting import bind_date, identifier, literal, names, qualified, row
from refill.connectors.postgres.types import form_of
from refill.domain.errors import Misconfigured, SourceChanged
from refill.domain.pipeline import Spec
from refill.domain.slice import CtidRange, Dated, KeyRange, NullKeys, Whole
from refill.domain.table import Column

DATE, TIMESTAMP, TIMESTAMPTZ = 1082, 1114, 1184
DAY = "refill day"  # the column that tells the dates of one query apart


def frozen_columns(spec: Spec) -> tuple[Column, ...]:
    """What is read, in order."""
    if spec.table is None:
        raise Misconfigured("The backfill froze no columns: start it again.")
    if not spec.columns:
        return spec.table.columns
    found = [(name, spec.table.column(name)) for name in spec.columns]
    missing = [name for name, column in found if column is None]
    if missing:
        raise SourceChanged(f"{spec.table.full_name} has no column {missing[0]!r}.")
    return tuple(column for _, column in found if column is not None)


def relation_name(spec: Spec) -> str:
    if spec.table is None:
        raise Misconfigured("The backfill names no table.")
    return qualified(spec.table.schema_name, spec.table.name)


def slice_query(spec: Spec, extent: KeyRange | NullKeys | CtidRange | Dated | Whole) -> str:
    """The rows of one slice."""
    chosen = _select_list(frozen_columns(spec))
    if spec.query is not None:
        if not isinstance(extent, Dated):
            raise Misconfigured("A query is read by date only.")
        return f"SELECT {chosen} FROM ({bind_date(spec.query, extent.date)}\n) AS source"
    # of a parent its own pages: each child has slices of its own
    relation = f"ONLY {extent.relation}" if isinstance(extent, CtidRange) else relation_name(spec)
    return f"SELECT {chosen} FROM {relation}{where(conditions(spec, extent))}"


def dates_query(spec: Spec, first: date, last: date, *, newest_first: bool) -> str:
    """The rows of a run of dates, in their order, each with the number of its date: 1 is `first`.

    The database tells them apart by the same edges that bound a single date, so that one query
    and many see the same rows.
    """
    days = (last - first).days + 1
    column = identifier(_date_column(spec).name)
    edges = ", ".join(_edge(spec, first + timedelta(days=day)) for day in range(days))
    within = where([f"{column} >= {_edge(spec, first)}", f"{column} < {_edge(spec, last, 1)}"])
    return (
        f"SELECT {_select_list(frozen_columns(spec))}, "
        f"width_bucket({column}, ARRAY[{edges}]) AS {identifier(DAY)} "
        f"FROM {relation_name(spec)}{within} "
        f"ORDER BY {column}{' DESC' if newest_first else ''}"
    )


def conditions(spec: Spec, extent: KeyRange | NullKeys | CtidRange | Dated | Whole) -> list[str]:
    match extent:
        case KeyRange():
            return key_conditions(spec, extent)
        case NullKeys():
            return [" OR ".join(null_test(spec, name, "IS NULL") for name in spec.sort_columns)]
        case CtidRange():
            bounds = [f"ctid >= '({extent.first_page},0)'::tid"]
            if extent.end_page is not None:
                bounds.append(f"ctid < '({extent.end_page},0)'::tid")
            return bounds
        case Dated():
            column = identifier(_date_column(spec).name)
            return [
                f"{column} >= {_edge(spec, extent.date)}",
                f"{column} < {_edge(spec, extent.date, 1)}",
            ]
        case Whole():
            return []


def key_conditions(spec: Spec, extent: KeyRange) -> list[str]:
    """A row comparison per side. A row with a NULL in a later part of the key can still compare
    as true: such rows belong to the rest slice alone."""
    found = []
    if extent.lower is not None:
        sign = ">=" if extent.lower_inclusive else ">"
        found.append(_compare(spec, sign, extent.lower))
    if extent.upper is not None:
        found.append(_compare(spec, "<=", extent.upper))
    for name in spec.sort_columns:
        column = spec.table.column(name) if spec.table else None
        if column is None or not column.not_null:
            found.append(null_test(spec, name, "IS NOT NULL"))
    return found


def null_test(spec: Spec, name: str, test: str) -> str:
    """A composite with a NULL in it is neither IS NULL nor IS NOT NULL: there, asked otherwise."""
    column = spec.table.column(name) if spec.table else None
    if column is not None and column.kind in ("c", "d"):
        distinct = {"IS NULL": "IS NOT DISTINCT FROM", "IS NOT NULL": "IS DISTINCT FROM"}
        test = f"{distinct[test]} NULL"
    return f"{identifier(name)} {test}"


def _compare(spec: Spec, sign: str, values: Sequence[str]) -> str:
    # a start or an end may name the first part of the key only
    columns = spec.sort_columns[: len(values)]
    literals = [
        _key_literal(spec, name, value) for name, value in zip(columns, values, strict=True)
    ]
    return f"{row(names(columns))} {sign} {row(literals)}"


def _key_literal(spec: Spec, name: str, value: str) -> str:
    column = spec.table.column(name) if spec.table else None
    if column is not None and column.kind == "c":
        # composites compare as records, and an untyped record cannot be read from text
        return f"{literal(value)}::{column.type}"
    return literal(value)


def where(found: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(f'({condition})' for condition in found)}" if found else ""


def _select_list(columns: Sequence[Column]) -> str:
    if not columns:
        raise Misconfigured("A table without columns has nothing to read.")
    return ", ".join(
        f"{form_of(column).select.format(identifier(column.name))} AS {identifier(column.name)}"
        for column in columns
    )


def _date_column(spec: Spec) -> Column:
    column = spec.table.column(spec.date_column) if spec.table and spec.date_column else None
    if column is None:
        raise Misconfigured(f"The transfer has no date column {spec.date_column!r}.")
    if (column.base_oid or column.oid) not in (DATE, TIMESTAMP, TIMESTAMPTZ):
        raise Misconfigured(
            f"The date column {column.name!r} is {column.type}; it must be a date or a timestamp."
        )
    return column


def _edge(spec: Spec, day: date, later: int = 0) -> str:
    """The first value of a date in the column's own type, so that an index on it is used.

    Days are added by the database: the last date that Python knows has a day after it too.
    """
    column = _date_column(spec)
    start = f"(DATE '{day.isoformat()}' + {later})" if later else f"DATE '{day.isoformat()}'"
    match column.base_oid or column.oid:
        case 1082:
            return start
        case 1114:
            return f"{start}::timestamp"
        case _:
            return f"({start}::timestamp AT TIME ZONE {literal(spec.timezone)})"
