"""Pools of connections that can be cut from another thread, so that who waits in one comes back."""

import threading
from collections.abc import Callable
from typing import Any

from refill.packs.pool import Borrowed, Closeable, Pool, T, close_quietly


class PackCancelled(BaseException):
    """No Exception: like the end of a killed task, it becomes nobody's failed slice."""


class PackPool(Pool):
    """The pool as one pack sees it: what the pack has out can be closed from another thread."""

    def __init__(self, shared: Pool) -> None:
        super().__init__()
        self._shared = shared
        self._out: list[Closeable] = []
        self._closed: list[Closeable] = []
        self._holding = threading.Lock()
        self.cancelled = False

    def borrow(self, key: str, opener: Callable[[], T]) -> Borrowed[T]:
        return Borrowed(self, key, lambda: self._lend(opener()))

    def take(self, key: str) -> Any:
        item = self._shared.take(key)
        return None if item is None else self._lend(item)

    def shelve(self, key: str, item: Closeable) -> None:
        with self._holding:
            self._out.remove(item)
            spoilt = self.cancelled or item in self._closed
        if spoilt:  # closed under the pack's hands: nothing for the next one
            close_quietly(item)
        else:
            self._shared.shelve(key, item)

    def forget(self, item: Closeable) -> None:
        with self._holding:
            if item in self._out:
                self._out.remove(item)

    def check(self) -> None:
        if self.cancelled:
            raise PackCancelled

    def cut(self) -> None:
        """Closes what is out, so that a read or a write that is blocked comes back. What is opened
        afterwards is good: the rest of a pack may still be run."""
        with self._holding:
            out = list(self._out)
            self._closed += out
        for item in out:
            close_quietly(item)

    def cancel(self) -> None:
        """Cuts, for good."""
        with self._holding:
            self.cancelled = True
        self.cut()

    def _lend(self, item: T) -> T:
        with self._holding:
            self._out.append(item)
            late = self.cancelled
        if late:  # opened while it was cancelled: nobody else would close it
            close_quietly(item)
            raise PackCancelled
        return item


class ThreadPool(Pool):
    """The pool of a worker's own threads: what one of them has out can be cut, thread by thread."""

    def __init__(self) -> None:
        super().__init__()
        self._guard = threading.Lock()
        self._by_thread: dict[int, PackPool] = {}

    def borrow(self, key: str, opener: Callable[[], T]) -> Borrowed[T]:
        with self._guard:
            mine = self._by_thread.setdefault(threading.get_ident(), PackPool(_Shelf(self)))
        return mine.borrow(key, opener)

    def cancel(self, thread: int) -> None:
        """For good: what that thread opens later is closed at once. Closing may block: it is done
        in a thread of its own."""
        with self._guard:
            mine = self._by_thread.pop(thread, None)
        if mine is not None:
            threading.Thread(target=mine.cancel, name="cut", daemon=True).start()


class _Shelf(Pool):
    """The shelf of a pool, without its lending."""

    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self._pool = pool

    def take(self, key: str) -> Any:
        return self._pool.take(key)

    def shelve(self, key: str, item: Closeable) -> None:
        self._pool.shelve(key, item)
