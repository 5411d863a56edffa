"""Packs in this very process, without Spark: for fast tests and for the simulation of faults.

No setting leads here. A pack has no process of its own that could be killed, and the worker's
threads share one interpreter: what Spark is for is not there.
"""

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from refill.connectors.kit.contract import Connector, Context
from refill.domain.errors import EngineUnavailable, Misconfigured, TransformFailed
from refill.domain.slice import Receipt
from refill.domain.spec import Spec
from refill.packs.assignment import Assignment
from refill.packs.pool import Borrowed, Closeable, Pool, T, close_quietly
from refill.packs.run import run_pack

if TYPE_CHECKING:
    import pyarrow as pa


class PackCancelled(BaseException):
    """No Exception: like the end of a killed task, it becomes nobody's failed slice."""


class PackPool(Pool):
    """The pool as one pack sees it: what the pack has out can be closed from another thread."""

    def __init__(self, shared: Pool) -> None:
        super().__init__()
        self._shared = shared
        self._out: list[Closeable] = []
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
            spoilt = self.cancelled
        if spoilt:  # closed under the pack's hands: nothing for the next one
            close_quietly(item)
        else:
            self._shared.shelve(key, item)

    def check(self) -> None:
        if self.cancelled:
            raise PackCancelled

    def cancel(self) -> None:
        """Closes what is out, so that a read or a write that is blocked comes back."""
        with self._holding:
            self.cancelled = True
            out = list(self._out)
        for item in out:
            close_quietly(item)

    def _lend(self, item: T) -> T:
        with self._holding:
            self._out.append(item)
            late = self.cancelled
        if late:  # opened while it was cancelled: nobody else would close it
            close_quietly(item)
            raise PackCancelled
        return item


class InProcessEngine:
    """Implements `Engine`: a pack runs in the thread that brings it."""

    def __init__(self, connectors: Mapping[str, Connector], *, cores: int = 2) -> None:
        self.cores = cores
        self._connectors = connectors
        self._pool = Pool()
        self._lock = threading.Lock()
        self._running: dict[str, PackPool] = {}
        self._cancelled_early: set[str] = set()
        self._started = False

    def start(self) -> None:
        self._started = True

    def alive(self) -> bool:
        return self._started

    def run(self, assignment: Assignment) -> list[Receipt]:
        if assignment.job.spec.transform:
            raise _no_sql()
        source, sink = (
            self._connector(assignment.source_type),
            self._connector(assignment.sink_type),
        )
        pool = self._begin(assignment.pack_id)
        try:
            receipts = list(run_pack(assignment, source, sink, pool=pool, check=pool.check))
            pool.check()  # what came back from a closed source or sink is nobody's word
            return receipts
        except PackCancelled as exc:
            raise EngineUnavailable(
                f"The work on {len(assignment.tickets)} slices was cut short; they are tried again."
            ) from exc
        finally:
            with self._lock:
                del self._running[assignment.pack_id]

    def cancel(self, pack_id: str) -> None:
        """A pack that has not begun yet does not begin."""
        with self._lock:
            pool = self._running.get(pack_id)
            if pool is None:
                self._cancelled_early.add(pack_id)
        if pool is not None:
            pool.cancel()

    def check_transform(
        self, spec: Spec, source_options: Mapping[str, Any], context: Context
    ) -> "pa.Schema":
        raise _no_sql()

    def keep_warm(self) -> None:
        """Nothing here gets cold."""

    def stop(self) -> None:
        """Cuts short what still runs, as Spark does: for a worker, its engine is then lost."""
        with self._lock:
            self._started = False
            running = list(self._running.values())
        for pool in running:
            pool.cancel()
        self._pool.close()

    def _begin(self, pack_id: str) -> PackPool:
        with self._lock:
            if not self._started:
                raise EngineUnavailable("The engine is not started.")
            pool = self._running[pack_id] = PackPool(self._pool)
            pool.cancelled = pack_id in self._cancelled_early
            self._cancelled_early.discard(pack_id)
        return pool

    def _connector(self, type_name: str) -> Connector:
        if type_name not in self._connectors:
            raise Misconfigured(f"There is no connector {type_name!r} here; install its extra.")
        return self._connectors[type_name]


def _no_sql() -> TransformFailed:
    return TransformFailed(
        "There is no Spark in this process, and so no SQL; run a worker with Spark."
    )
