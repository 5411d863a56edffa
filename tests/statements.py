"""What a call costs the store, counted: the same on every machine, however busy it is."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from refill.store.port import Store

_STEPS = 10  # of SQLite's virtual machine, at each of which it calls back


def engine_of(store: Store) -> sa.Engine:
    engine: sa.Engine = store._backend.engine  # type: ignore[attr-defined]
    return engine


@contextmanager
def counted(store: Store) -> Iterator[list[str]]:
    """The statements that are sent meanwhile."""
    engine, seen = engine_of(store), []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        seen.append(statement)

    sa.event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        sa.event.remove(engine, "before_cursor_execute", note)


class Steps:
    """Tens of steps of SQLite's virtual machine: what a statement walks through."""

    def __init__(self) -> None:
        self.tens = 0

    def count(self) -> int:
        self.tens += 1
        return 0  # goes on


@contextmanager
def stepped(store: Store) -> Iterator[Steps]:
    """Of an embedded store: the work of the statements that begin meanwhile."""
    engine, steps = engine_of(store), Steps()

    def watch(connection: sa.Connection, *_rest: Any) -> None:
        # it stays: rows are walked to while they are fetched, after the statement
        driver: Any = connection.connection.driver_connection
        driver.set_progress_handler(steps.count, _STEPS)

    sa.event.listen(engine, "before_cursor_execute", watch)
    try:
        yield steps
    finally:
        sa.event.remove(engine, "before_cursor_execute", watch)
