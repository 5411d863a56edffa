"""Packs in this very process, without Spark: for fast tests and for the simulation of faults.

No setting leads here. A pack has no process of its own that could be killed, and the worker's
threads share one interpreter: what Spark is for is not there.
"""

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from refill.connectors.kit.contract import Connector, Context
from refill.domain.errors import EngineUnavailable, Misconfigured, TransformFailed
from refill.domain.slice import Receipt
from refill.domain.spec import Spec
from refill.packs.assignment import Assignment
from refill.packs.pack_pool import PackCancelled, PackPool
from refill.packs.pool import Pool
from refill.packs.run import run_pack
from refill.packs.watch import Watch

if TYPE_CHECKING:
    import pyarrow as pa


class InProcessEngine:
    """Implements `Engine`: a pack runs in the thread that brings it."""

    def __init__(self, connectors: Mapping[str, Connector], *, cores: int = 2) -> None:
        self.cores = cores
        self._connectors = connectors
        self._pool = Pool()
        self._lock = threading.Lock()
        self._running: dict[str, PackPool] = {}
        self._watches: dict[str, Watch] = {}
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
        watch = self._watches[assignment.pack_id] = Watch(assignment.stall_seconds)
        try:
            receipts = list(
                run_pack(assignment, source, sink, pool=pool, check=pool.check, watch=watch)
            )
            pool.check()  # what came back from a closed source or sink is nobody's word
            return receipts
        except PackCancelled as exc:
            raise EngineUnavailable(
                f"The work on {len(assignment.tickets)} slices was cut short; they are tried again."
            ) from exc
        finally:
            with self._lock:
                del self._running[assignment.pack_id]
                del self._watches[assignment.pack_id]

    def cancel(self, pack_id: str) -> None:
        """A pack that has not begun yet does not begin."""
        with self._lock:
            pool = self._running.get(pack_id)
            if pool is None:
                self._cancelled_early.add(pack_id)
        if pool is not None:
            pool.cancel()

    def progress(self, pack_id: str) -> int | None:
        watch = self._watches.get(pack_id)
        return None if watch is None else watch.beats

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
