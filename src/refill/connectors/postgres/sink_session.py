"""A session that writes: SQL and binary COPY from Arrow on one connection, in one transaction."""

import time
from typing import TYPE_CHECKING, Any

from refill.connectors.kit.addresses import ANYWHERE, NetworkPolicy
from refill.connectors.postgres.connection import conninfo
from refill.connectors.postgres.options import PostgresOptions
from refill.connectors.postgres.quoting import literal

if TYPE_CHECKING:
    import pyarrow as pa

_SETTINGS = {
    "default_transaction_read_only": "off",
    # a lock that does not come free is worth another try, not an endless wait
    "lock_timeout": "30s",
    # the source prints its types as a session sees them that has `public` in its path
    "search_path": "public",
}
_TRUSTED_SECONDS = 1.0


class SinkSession:
    """A transaction begins with the first statement and ends with `commit` or `rollback`."""

    def __init__(
        self,
        options: PostgresOptions,
        purpose: str = "sink",
        network: NetworkPolicy = ANYWHERE,
    ) -> None:
        from adbc_driver_postgresql import dbapi

        self._connection: Any = dbapi.connect(
            conninfo(options, purpose, session=_SETTINGS, network=network),
            # else it reads all of pg_attribute first: slow where there are many tables
            db_kwargs={"adbc.postgresql.type_resolver_mode": "builtin"},
            # transactions are ours to begin: the driver's own cannot go back to a savepoint
            autocommit=True,
        )
        self._cursor: Any = self._connection.cursor()
        # else a SELECT is prepared and wrapped into a COPY, which pays off for many rows only
        self._cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})
        self._begun = False
        self._used_at = time.monotonic()

    def execute(self, sql: str) -> None:
        """Statements without a result, several at a time: one trip to the server."""
        begin = "" if self._begun else "BEGIN; "
        self._begun = True
        self._cursor.executescript(f"{begin}{sql}")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        if not self._begun:
            self.execute("")
        self._cursor.execute(sql)
        found: list[tuple[Any, ...]] = self._cursor.fetchall()
        return found

    def row(self, sql: str) -> tuple[Any, ...] | None:
        found = self.rows(sql)
        return found[0] if found else None

    def copy(self, schema: str, table: str, batch: "pa.RecordBatch") -> None:
        """Binary COPY, encoded from Arrow by the driver. Errors name the row that was at fault."""
        self._cursor.adbc_ingest(table, batch, mode="append", db_schema_name=schema)

    def name(self, purpose: str) -> None:
        """How others find this backend in pg_stat_activity."""
        self.execute(f"SET application_name = {literal(purpose)}")

    def commit(self, last: str = "") -> None:
        """`last`: statements that go along on the trip."""
        self.execute(f"{last}; COMMIT" if last else "COMMIT")
        self._ended()

    def rollback(self) -> None:
        self.execute("ROLLBACK")
        self._ended()

    def alive(self) -> bool:
        """A session that lay idle may have been ended meanwhile: looked at before it is used."""
        if time.monotonic() - self._used_at < _TRUSTED_SECONDS:
            return True
        import adbc_driver_manager

        try:
            self._cursor.executescript("SELECT 1")
        except adbc_driver_manager.Error:
            return False
        return True

    def close(self) -> None:
        self._cursor.close()
        self._connection.close()

    def _ended(self) -> None:
        self._begun = False
        self._used_at = time.monotonic()
