"""Connections and transactions, and all that differs between SQLite and PostgreSQL."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from refill.domain.errors import Invalid, Misconfigured, RefillError, StoreBusy

BUSY_SECONDS = 5.0
RETRY_AFTER_SECONDS = 2.0
WAL_IS_SOUND = (3, 51, 3)  # before it, a WAL reset with several writers can corrupt the file

_PG_NOW = sa.text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
_LOCKED = {"40001", "40P01", "55P03"}  # serialization failure, deadlock, lock not available
_REFUSED = ("authentication failed", "does not exist", "no pg_hba.conf entry")


class Backend:
    """One database and how to talk to it. Used from all threads."""

    def __init__(self, engine: sa.Engine, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.engine = engine
        self.name = engine.dialect.name
        self._busy_seconds = busy_seconds
        # Threads of one process queue here: SQLite's own waiting polls, and is not fair.
        self._writer = threading.Lock() if self.name == "sqlite" else None

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Statements that all see one moment."""
        with self._errors(), self.engine.connect() as connection:
            if self.name == "postgresql":
                connection = connection.execution_options(
                    isolation_level="REPEATABLE READ", postgresql_readonly=True
                )
            with connection.begin():
                yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """All or nothing."""
        with self._errors(), self._turn(), self.engine.connect() as connection:
            if self.name == "sqlite":
                connection = connection.execution_options(refill_write=True)
            with connection.begin():
                yield connection

    def now(self, connection: sa.Connection) -> int:
        """The database's clock: on PostgreSQL the server's, so that no worker's clock counts."""
        if self.name == "sqlite":
            return time.time_ns() // 1000
        return int(connection.execute(_PG_NOW).scalar_one())

    def insert_missing(self, table: sa.Table) -> Any:
        """An INSERT that leaves rows alone which are there already."""
        # imported here: the one that is not used takes a tenth of a second to load
        if self.name == "sqlite":
            from sqlalchemy.dialects import sqlite

            return sqlite.insert(table).on_conflict_do_nothing()
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table).on_conflict_do_nothing()

    def version(self, connection: sa.Connection) -> str:
        if self.name == "sqlite":
            return sqlite3.sqlite_version
        return str(connection.exec_driver_sql("SHOW server_version").scalar_one())

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if self._writer is None:
            yield
            return
        if not self._writer.acquire(timeout=self._busy_seconds):
            raise _busy("is locked by other writers")
        try:
            yield
        finally:
            self._writer.release()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (exc.DBAPIError, exc.TimeoutError) as error:
            translated = translate(error)
            if translated is None:
                raise
            raise translated from error
        except (OverflowError, UnicodeEncodeError) as error:
            raise _unstorable() from error


def open_sqlite(path: Path, *, busy_seconds: float = BUSY_SECONDS) -> Backend:
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path)),
        poolclass=sa.QueuePool,
        pool_size=8,
        max_overflow=32,
        pool_timeout=busy_seconds,
        connect_args={"timeout": busy_seconds, "check_same_thread": False},
    )

    @sa.event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # BEGIN is ours to say
        wal = sqlite3.sqlite_version_info >= WAL_IS_SOUND
        connection.execute(f"PRAGMA journal_mode = {'WAL' if wal else 'TRUNCATE'}")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        # A reader that turns writer half-way cannot wait its turn: it would be refused at once.
        writes = connection.get_execution_options().get("refill_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return Backend(engine, busy_seconds=busy_seconds)


def open_postgres(url: str, *, busy_seconds: float = BUSY_SECONDS) -> Backend:
    try:
        parsed = sa.make_url(url)
    except exc.ArgumentError:
        raise Misconfigured(
            "The store URL cannot be read; write postgresql://user:password@host:port/database."
        ) from None
    if parsed.get_backend_name() != "postgresql":
        raise Misconfigured(
            f"The store URL names {parsed.get_backend_name()}; only postgresql://… is supported "
            "(leave it out for the embedded store)."
        )
    engine = sa.create_engine(
        parsed.set(drivername="postgresql+psycopg"),
        pool_size=8,
        max_overflow=32,
        pool_timeout=busy_seconds,
        pool_pre_ping=True,  # the server may have restarted since
        connect_args={
            "connect_timeout": max(2, int(busy_seconds)),
            "application_name": "refill-store",
            # compiling a query would take longer than any of these queries
            "options": f"-c lock_timeout={int(busy_seconds * 1000)} -c jit=off",
        },
    )
    return Backend(engine, busy_seconds=busy_seconds)


def translate(error: exc.DBAPIError | exc.TimeoutError) -> RefillError | None:
    """What a driver's error means to the caller; None: it is a bug of ours."""
    if isinstance(error, exc.TimeoutError):
        return _busy("has no connection left")
    if isinstance(error.orig, sqlite3.Error):
        return _translate_sqlite(error.orig)
    if isinstance(error, exc.DataError):
        return _unstorable()
    state = getattr(error.orig, "sqlstate", None)
    if state in _LOCKED:
        return _busy("is locked by other writers")
    if state is not None and state.startswith("53"):
        return _busy("is out of room or connections")
    if any(word in str(error.orig) for word in _REFUSED) and state in (None, "28P01", "3D000"):
        return Misconfigured(
            f"The metadata store refused the connection: {str(error.orig).strip()}. "
            "Check the store URL."
        )
    gone = isinstance(error, exc.OperationalError | exc.InterfaceError)
    if error.connection_invalidated or gone:
        return _busy("cannot be reached")
    return None


def _translate_sqlite(error: sqlite3.Error) -> RefillError | None:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return _busy("is locked by other writers")
    if code == sqlite3.SQLITE_FULL:
        return _busy("has no room left on its disk: make room")
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        return _busy("cannot be opened or written: check the home directory and its disk")
    if code == sqlite3.SQLITE_READONLY:
        return Misconfigured("The metadata store cannot be written: make its file writable.")
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return Misconfigured("The metadata store's file is damaged: restore it from a backup.")
    return None


def _unstorable() -> Invalid:
    return Invalid("A value cannot be stored: a number beyond 64 bits, or text with a NUL in it.")


def _busy(how: str) -> StoreBusy:
    return StoreBusy(
        f"The metadata store {how}; try again shortly.",
        retry_after_seconds=RETRY_AFTER_SECONDS,
    )
