"""What a backfill froze against what is there now."""

from collections.abc import Sequence
from typing import Any

from refill.connectors.kit.frozen import check_columns
from refill.connectors.postgres.catalogue import describe_types
from refill.connectors.postgres.native import NativeType
from refill.domain.errors import Invalid
from refill.domain.spec import Read
from refill.domain.table import Column


def check_frozen(read: Read, now: Sequence[Column] | None) -> None:
    """SourceChanged when what was frozen is no longer so; types go by their numbers."""
    check_columns(read, now, lambda frozen, found: _type(frozen) == _type(found))


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
