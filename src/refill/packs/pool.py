"""Open sources and sinks, kept for the next pack: connecting costs more than a small slice."""

import hashlib
import logging
import pickle
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from refill.connectors.kit.contract import Connector, Context, Sink, Source
from refill.domain.errors import Misconfigured

log = logging.getLogger(__name__)


class Closeable(Protocol):
    def close(self) -> None: ...


T = TypeVar("T", bound=Closeable)


class Pool:
    """Keeps what nobody uses just now, for a while. Safe to use from several threads."""

    def __init__(self, *, idle_seconds: float = 45.0, capacity: int = 8) -> None:
        self._idle_seconds = idle_seconds
        self._capacity = capacity
        self._lock = threading.Lock()
        self._shelf: list[tuple[str, Any, float]] = []  # oldest first
        self._timer: threading.Timer | None = None

    def borrow(self, key: str, opener: Callable[[], T]) -> "Borrowed[T]":
        return Borrowed(self, key, opener)

    def take(self, key: str) -> Any:
        with self._lock:
            for position in reversed(range(len(self._shelf))):
                if self._shelf[position][0] == key:
                    return self._shelf.pop(position)[1]
        return None

    def shelve(self, key: str, item: Closeable) -> None:
        with self._lock:
            self._shelf.append((key, item, time.monotonic()))
            surplus = self._shelf[: -self._capacity]
            del self._shelf[: -self._capacity]
            self._start_timer()
        for _, old, _ in surplus:
            close_quietly(old)

    def forget(self, item: Closeable) -> None:
        """What was lent is not coming back."""

    def expire(self) -> None:
        """Closes what was not used for a while."""
        eldest = time.monotonic() - self._idle_seconds
        with self._lock:
            expired = [item for _, item, since in self._shelf if since <= eldest]
            self._shelf = [entry for entry in self._shelf if entry[2] > eldest]
            self._timer = None
            if self._shelf:
                self._start_timer()
        for item in expired:
            close_quietly(item)

    def close(self) -> None:
        with self._lock:
            items = [item for _, item, _ in self._shelf]
            self._shelf.clear()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        for item in items:
            close_quietly(item)

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(self._idle_seconds, self.expire)
            self._timer.daemon = True
            self._timer.start()


class Borrowed(Generic[T]):
    """One thing out of the pool: opened at its first use, given back or thrown away at the end."""

    def __init__(self, pool: Pool, key: str, opener: Callable[[], T]) -> None:
        self._pool = pool
        self._key = key
        self._opener = opener
        self._item: T | None = None

    def get(self) -> T:
        if self._item is None:
            self._item = self._pool.take(self._key) or self._opener()
        return self._item

    def discard(self) -> None:
        """It may be broken: closes it; the next `get` opens another."""
        item, self._item = self._item, None
        if item is not None:
            self._pool.forget(item)
            close_quietly(item)

    def give_back(self) -> None:
        item, self._item = self._item, None
        if item is not None:
            self._pool.shelve(self._key, item)

    def __enter__(self) -> "Borrowed[T]":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.give_back()
        else:
            self.discard()


def source_of(
    pool: Pool, connector: Connector, options: Mapping[str, Any], context: Context
) -> "Borrowed[Source]":
    opener = connector.open_source
    if opener is None:
        raise Misconfigured(f"{connector.title} cannot be read from.")
    return pool.borrow(
        key_of("source", connector.type, options, context),
        lambda: opener(connector.options_model(**options), context),
    )


def sink_of(
    pool: Pool, connector: Connector, options: Mapping[str, Any], context: Context
) -> "Borrowed[Sink]":
    opener = connector.open_sink
    if opener is None:
        raise Misconfigured(f"{connector.title} cannot be written to.")
    return pool.borrow(
        key_of("sink", connector.type, options, context),
        lambda: opener(connector.options_model(**options), context),
    )


def key_of(role: str, type_name: str, options: Mapping[str, Any], context: Context) -> str:
    """A digest, since the options hold secrets."""
    plain = pickle.dumps((role, type_name, sorted(options.items(), key=lambda o: o[0]), context))
    return hashlib.sha256(plain).hexdigest()


def close_quietly(item: Closeable) -> None:
    """A connection that cannot even be closed has nothing more to tell."""
    try:
        item.close()
    except Exception:
        log.debug("closing failed", exc_info=True, extra={"action": "close"})
