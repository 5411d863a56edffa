"""Sinks made ready, once per worker and backfill; and what is left of cancelled ones cleared."""

import logging
import threading
from typing import TYPE_CHECKING

from refill.domain.backfill import Backfill, Status
from refill.packs.engine import Engine
from refill.packs.pool import Pool, sink_of, source_of
from refill.worker.assignments import job_of
from refill.worker.ends import Ends, EndsFinder

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)


class Prepared:
    def __init__(self, engine: Engine, ends: EndsFinder, pool: Pool) -> None:
        self._engine = engine
        self._ends = ends
        self._pool = pool
        self._lock = threading.Lock()
        self._ready: dict[int, int] = {}  # backfill id → team id
        self._turns: dict[int, threading.Lock] = {}

    def ensure(self, backfill: Backfill, ends: Ends) -> None:
        with self._lock:
            if backfill.id in self._ready:
                return
            turn = self._turns.setdefault(backfill.id, threading.Lock())
        with turn:
            if backfill.id in self._ready:
                return
            schema = self._schema(backfill, ends)
            with sink_of(self._pool, ends.sink, ends.sink_options, ends.context) as sink:
                sink.get().prepare(job_of(backfill), schema)
            with self._lock:
                self._ready[backfill.id] = backfill.team_id
                self._turns.pop(backfill.id, None)

    def known(self) -> list[tuple[int, int]]:
        """(team id, backfill id) of those that may still be going on."""
        with self._lock:
            return [(team_id, backfill_id) for backfill_id, team_id in self._ready.items()]

    def forget(self, backfill: Backfill) -> None:
        """It has ended. What a cancelled one never showed is removed; a failed one may be retried,
        and keeps what its finished slices have staged."""
        with self._lock:
            self._ready.pop(backfill.id, None)
        if backfill.status is not Status.CANCELLED:
            return
        ends = self._ends.find(backfill)
        with sink_of(self._pool, ends.sink, ends.sink_options, ends.context) as sink:
            sink.get().discard(job_of(backfill))

    def _schema(self, backfill: Backfill, ends: Ends) -> "pa.Schema":
        """Of what the sink will be given: the source's, or what the SQL makes of it."""
        if backfill.spec.transform:
            return self._engine.check_transform(backfill.spec, ends.source_options, ends.context)
        with source_of(self._pool, ends.source, ends.source_options, ends.context) as source:
            return source.get().schema(backfill.spec.read)
