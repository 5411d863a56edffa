"""One query per batch of rows, for what another table knows of them."""

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from refill.connectors.postgres import frozen
from refill.connectors.postgres import read as sql
from refill.connectors.postgres.connection import ArrowSession, connect
from refill.connectors.postgres.options import PostgresOptions
from refill.connectors.postgres.quoting import bind_keys, literal
from refill.domain.errors import Invalid
from refill.domain.table import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from refill.connectors.postgres.values import Converter

LOOK_UP_SECONDS = 30
BATCH_BYTES = 8 * 1024 * 1024


class LookUp:
    """A session of its own: the one that reads the table is in the middle of it."""

    def __init__(self, options: PostgresOptions) -> None:
        self._options = options
        self._session: ArrowSession | None = None
        self._known: dict[str, tuple[tuple[Column, ...], Converter]] = {}

    def rows(self, query: str, key: Column, keys: Sequence[str]) -> "pa.Table":
        import pyarrow as pa

        columns, converter = self._described(query, key)
        found = f"SELECT {sql.select_list(columns)} FROM ({bind_keys(query, _array(key, keys))}\n) "
        with closing(self._open().query(found + "AS source")) as stream:
            batches = [converter.convert(batch) for batch in stream.reader]
        return pa.Table.from_batches(batches, schema=converter.schema)

    def _described(self, query: str, key: Column) -> "tuple[tuple[Column, ...], Converter]":
        from refill.connectors.postgres.values import Converter

        if query not in self._known:
            with closing(
                connect(self._options, "enriching", statement_timeout_seconds=LOOK_UP_SECONDS)
            ) as connection:
                columns = _describe(connection, bind_keys(query, _array(key, [])))
            self._known[query] = columns, Converter(columns, "the enrichment")
        return self._known[query]

    def _open(self) -> ArrowSession:
        if self._session is None:
            session = ArrowSession(self._options, "enriching", BATCH_BYTES)
            try:
                session.execute(f"SET statement_timeout = '{LOOK_UP_SECONDS}s'")
            except BaseException:
                session.close()
                raise
            self._session = session
        return self._session

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()


def _describe(connection: Any, query: str) -> tuple[Column, ...]:
    try:
        return frozen.describe_query(connection, query)
    except Invalid as exc:
        problems = [problem for found in exc.fields.values() for problem in found]
        raise Invalid.of("enrichment", "; ".join(problems)) from exc


def _array(key: Column, keys: Sequence[str]) -> str:
    """The keys as one literal of an array of the key's own type."""
    quoted = ('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in keys)
    return f"{literal('{' + ','.join(quoted) + '}')}::{key.type}[]"
