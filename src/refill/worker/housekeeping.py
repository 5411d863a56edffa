"""What has to be done now and then: schedules, pruning, warmth, and what ended backfills left."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from refill.domain.errors import NotFound, RefillError, StoreBusy
from refill.packs.engine import Engine
from refill.store.port import Store
from refill.worker.in_flight import InFlight
from refill.worker.prepared import Prepared
from refill.worker.snapshots import Snapshots

log = logging.getLogger(__name__)

TICK_SECONDS = 0.5
LOOK_SECONDS = 5.0  # between two turns of a chore
NOTIFY_SECONDS = 2.0
# Spark ends a Python worker after a minute without work
WARM_AFTER_SECONDS = 40.0


@dataclass(slots=True)
class Chore:
    name: str
    every_seconds: float
    do: Callable[[], None]
    due: float = field(default=0.0)


class Housekeeping:
    def __init__(
        self,
        store: Store,
        engine: Engine,
        in_flight: InFlight,
        prepared: Prepared,
        snapshots: Snapshots,
        *,
        retention_days: int,
        fire_schedules: Callable[[], None] | None,
        notify: Callable[[], None] | None = None,
    ) -> None:
        self._store = store
        self._engine = engine
        self._in_flight = in_flight
        self._prepared = prepared
        self._snapshots = snapshots
        self._warm_at = time.monotonic()
        self._chores = [
            Chore("fire_schedules", LOOK_SECONDS, fire_schedules or (lambda: None)),
            Chore("notify", NOTIFY_SECONDS, notify or (lambda: None)),
            Chore("forget_ended", LOOK_SECONDS, self.forget_ended),
            Chore("keep_warm", LOOK_SECONDS, self.keep_warm),
            Chore("prune", 3600.0, lambda: self.prune(retention_days)),
        ]

    def run(self, ended: threading.Event) -> None:
        while not ended.wait(TICK_SECONDS):
            for chore in self._chores:
                now = time.monotonic()
                if now < chore.due or ended.is_set():
                    continue
                chore.due = now + chore.every_seconds
                self._do(chore)

    def _do(self, chore: Chore) -> None:
        try:
            chore.do()
        except StoreBusy:
            chore.due = 0.0  # soon again
        except RefillError as exc:
            log.warning("%s: %s", chore.name, exc.message, extra={"action": chore.name})
        except Exception:
            log.exception("%s failed", chore.name, extra={"action": chore.name})

    def forget_ended(self) -> None:
        for team_id, backfill_id in self._prepared.known():
            try:
                backfill = self._store.get_backfill(team_id, backfill_id)
            except NotFound:
                self._snapshots.drop(backfill_id)
                continue
            if backfill.status.active or backfill.counters.slices_claimed:
                continue
            self._snapshots.drop(backfill_id)
            self._prepared.forget(backfill)

    def keep_warm(self) -> None:
        idle = self._in_flight.idle_seconds()
        if min(idle, time.monotonic() - self._warm_at) < WARM_AFTER_SECONDS:
            return
        self._engine.keep_warm()
        self._warm_at = time.monotonic()

    def prune(self, retention_days: int) -> None:
        gone = self._store.prune(retention_days)
        if gone:
            log.info("pruned %d slices", gone, extra={"action": "pruned"})
