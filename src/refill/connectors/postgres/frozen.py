"""What a backfill froze against what is there now."""

from collections.abc import Sequence
from typing import Any

from refill.connectors.postgres.catalogue import describe_types
from refill.connectors.postgres.native import NativeType
from refill.domain.errors import Invalid, SourceChanged
from refill.domain.spec import DatedRead, KeyedRead, QueryRead, Read
from refill.domain.table import Column


def columns_in_use(read: Read) -> tuple[Column, ...]:
    """What is read, and what the slices go by."""
    match read:
        case QueryRead():
            return read.fields
        case KeyedRead():
            beside = set(read.sort_columns)
        case DatedRead():
            beside = {read.date_column}
    used = {column.name for column in read.fields} | beside
    return tuple(column for column in read.table.columns if column.name in used)


def compare(frozen: Sequence[Column], now: Sequence[Column], what: str) -> None:
    """SourceChanged when a column is gone or has another type. One more is no concern."""
    live = {column.name: column for column in now}
    for column in frozen:
        found = live.get(column.name)
        if found is None:
            raise SourceChanged(
                f"Column {column.name!r} of {what} is gone, or may not be read any more: refresh "
                "the database's tables and start a new backfill."
            )
        if _type(found) != _type(column):
            raise SourceChanged(
                f"Column {column.name!r} of {what} was {column.type} and is now {found.type}: "
                "refresh the database's tables and start a new backfill."
            )


def _type(column: Column) -> tuple[int, int]:
    native = NativeType.of(column)
    return native.oid, native.typmod


def describe_query(connection: Any, query: str) -> tuple[Column, ...]:
    """The columns of a query, which is prepared and not run; Invalid says what is wrong with it."""
    wire = connection.pgconn
    for result in (wire.prepare(b"", query.encode()), wire.describe_prepared(b"")):
        if result.error_message:
            state = (result.error_field(67) or b"").decode()  # SQLSTATE
            said = (result.error_field(77) or b"").decode()  # the message, without our SQL
            raise Invalid.of("query", f"PostgreSQL says: {said} ({state}).")
    columns = [
        (result.fname(number).decode(), result.ftype(number), result.fmod(number))
        for number in range(result.nfields)
    ]
    if not columns:
        raise Invalid.of("query", "must be a SELECT that returns columns.")
    seen = [name for name, _, _ in columns]
    twice = next((name for name in seen if seen.count(name) > 1), None)
    if twice is not None:
        raise Invalid.of("query", f"returns two columns named {twice!r}: give each its own name.")
    return describe_types(connection, columns)
