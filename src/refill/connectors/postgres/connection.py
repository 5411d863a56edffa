"""Sessions: how every connection of ours to PostgreSQL is opened, by psycopg and by ADBC."""

import os
import socket
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from refill.connectors.kit.addresses import ANYWHERE, NetworkPolicy
from refill.connectors.postgres.options import PostgresOptions
from refill.connectors.postgres.pem_files import pem_path
from refill.domain.errors import SinkRefused, SinkUnavailable, SourceRefused, SourceUnavailable

if TYPE_CHECKING:
    import psycopg

# Text that the server sends must be read back by it exactly, and mean the same on every server:
# no locale, zone or style of the role or the database may reach into a value.
SESSION: dict[str, str] = {
    "DateStyle": "ISO,MDY",
    "TimeZone": "UTC",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "lc_monetary": "C",
    "xmloption": "content",
    "standard_conforming_strings": "on",
    "default_transaction_read_only": "on",
    "default_transaction_isolation": "read\\ committed",
    "idle_in_transaction_session_timeout": "0",
    # compiling a query that only scans costs more than it saves
    "jit": "off",
    # a scan that joins another one half-way returns the rows of a range of pages in another order
    # at every attempt, and rows without a key are known by their place
    "synchronize_seqscans": "off",
}
CONNECT_TIMEOUT_SECONDS = 10


def conninfo(
    options: PostgresOptions,
    purpose: str,
    *,
    statement_timeout_seconds: float = 0,
    connect_timeout_seconds: float = CONNECT_TIMEOUT_SECONDS,
    session: dict[str, str] | None = None,
    network: NetworkPolicy = ANYWHERE,
) -> str:
    """A libpq connection string made of the typed fields and nothing else."""
    from psycopg.conninfo import make_conninfo

    settings = {**SESSION, **(session or {})}
    settings["statement_timeout"] = str(round(statement_timeout_seconds * 1000))
    addresses = resolve(options.hostname, options.port, network)
    return make_conninfo(
        "",
        # all of them, in turn: `localhost` may be ::1 first, and the server on 127.0.0.1
        host=",".join([options.hostname] * len(addresses)),
        hostaddr=",".join(addresses),
        port=options.port,
        dbname=options.database,
        user=options.username,
        password=options.password.get_secret_value(),
        **_guards(options),
        gssencmode="disable",
        # never a password, key or service that lies about on this machine
        passfile="/dev/null",
        connect_timeout=max(2, round(connect_timeout_seconds)),
        client_encoding="UTF8",
        application_name=f"refill {purpose}"[:63],
        keepalives=1,
        keepalives_idle=30,
        keepalives_interval=10,
        keepalives_count=3,
        tcp_user_timeout=60_000,
        options=" ".join(f"-c {name}={value}" for name, value in settings.items()),
    )


def _guards(options: PostgresOptions) -> dict[str, str]:
    """Who is told the password: a server that proves who it is, as far as was asked for, and in a
    way from which the password cannot be read. A server that asks for none may be spoken to."""
    found: dict[str, str] = {"sslmode": options.mode}
    if not options.weak_authentication:
        found["require_auth"] = "scram-sha-256,none"
    if options.mode == "disable":
        return found
    if options.mode in ("verify-ca", "verify-full"):
        found["sslrootcert"] = (
            pem_path(options.ca_certificate)
            if options.ca_certificate
            else ssl.get_default_verify_paths().cafile or "system"
        )
    else:
        # of the user that we run as: one that lies there would be checked against
        found["sslrootcert"] = "/dev/null/none"
    if options.client_certificate is not None and options.client_key is not None:
        found["sslcert"] = pem_path(options.client_certificate)
        found["sslkey"] = pem_path(options.client_key.get_secret_value())
    else:
        found["sslcertmode"] = "disable"
    return found


def resolve(hostname: str, port: int, network: NetworkPolicy = ANYWHERE) -> list[str]:
    """The addresses to connect to, looked up once. A database may be private or on this machine,
    but never where a cloud serves its machines' credentials from."""
    try:
        return list(network.addresses(hostname, port))[:4]
    except SinkUnavailable as exc:
        raise SourceUnavailable(exc.message) from exc
    except SinkRefused as exc:
        raise SourceRefused(exc.message) from exc


def connect(
    options: PostgresOptions, purpose: str, **settings: Any
) -> "psycopg.Connection[tuple[Any, ...]]":
    """A psycopg session in autocommit; its errors are psycopg's own."""
    import psycopg

    return psycopg.connect(conninfo(options, purpose, **settings), autocommit=True)


def cut(connection: "psycopg.Connection[Any]") -> None:
    """Ends what another thread waits for on it: closing alone would leave that thread waiting on
    a descriptor that is gone."""
    with suppress(Exception):
        wire = socket.socket(fileno=os.dup(connection.fileno()))
        try:
            wire.shutdown(socket.SHUT_RDWR)
        finally:
            wire.close()


class ArrowSession:
    """An ADBC connection: rows leave it as Arrow batches, by binary COPY."""

    def __init__(
        self,
        options: PostgresOptions,
        purpose: str,
        batch_bytes: int,
        network: NetworkPolicy = ANYWHERE,
    ) -> None:
        import adbc_driver_manager as manager
        import adbc_driver_postgresql as driver

        self._batch_bytes = batch_bytes
        self._database = driver.connect(
            conninfo(options, purpose, network=network),
            # else it reads all of pg_attribute first, which takes long where there are many
            # tables; every type we ask for is built in, or comes as text or bytes
            db_kwargs={"adbc.postgresql.type_resolver_mode": "builtin"},
        )
        try:
            self._connection = manager.AdbcConnection(self._database)
        except BaseException:
            self._database.close()
            raise

    def execute(self, sql: str) -> None:
        """Statements without a result."""
        import adbc_driver_manager as manager

        with manager.AdbcStatement(self._connection) as statement:
            statement.set_sql_query(sql)
            statement.execute_update()

    def query(self, sql: str) -> "ArrowStream":
        import adbc_driver_manager as manager

        statement = manager.AdbcStatement(self._connection)
        try:
            statement.set_options(
                **{"adbc.postgresql.batch_size_hint_bytes": str(self._batch_bytes)}
            )
            statement.set_sql_query(sql)
            return ArrowStream(statement)
        except BaseException:
            statement.close()
            raise

    def cancel(self) -> None:
        self._connection.cancel()

    def close(self) -> None:
        self._connection.close()
        self._database.close()


class ArrowStream:
    """The result of one query; closing it stops the query. To be closed once: the driver counts
    open statements, and a second time would be another one's."""

    def __init__(self, statement: Any) -> None:
        from adbc_driver_manager import _reader

        self._statement = statement
        handle, _ = statement.execute_query()
        # this reader, unlike pyarrow's own, keeps the SQLSTATE of an error in mid-stream
        self.reader = _reader.AdbcRecordBatchReader._import_from_c(handle.address)

    def close(self) -> None:
        try:
            self.reader.close()
        finally:
            self._statement.close()
