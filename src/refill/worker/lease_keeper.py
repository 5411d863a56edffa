"""Keeps the leases alive, gives up what was lost, and mends what dead workers left."""

import logging
import threading
import time

from refill.domain.errors import RefillError, StoreBusy
from refill.domain.retry import RetryPolicy
from refill.logs import about
from refill.packs.engine import Engine
from refill.store.port import WorkStore
from refill.worker.in_flight import InFlight, PackInFlight

log = logging.getLogger(__name__)


class LeaseKeeper:
    """One thread beats and sweeps, in this order: a sweep that ran while our own heartbeat was
    overdue would take our slices from us."""

    def __init__(
        self,
        store: WorkStore,
        engine: Engine,
        in_flight: InFlight,
        policy: RetryPolicy,
        *,
        worker: str,
        lease_seconds: float,
    ) -> None:
        self._store = store
        self._engine = engine
        self._in_flight = in_flight
        self._policy = policy
        self._worker = worker
        self._lease_seconds = lease_seconds

    def run(self, ended: threading.Event) -> None:
        interval = self._lease_seconds / 3
        while not ended.is_set():
            began = time.monotonic()
            try:
                self.beat()
                self.sweep()
            except StoreBusy as exc:
                log.warning(
                    "heartbeat is late: %s", exc.message, extra={"action": "heartbeat_late"}
                )
                ended.wait(min(interval / 4, 0.5))
                continue
            except Exception:
                log.exception("heartbeat failed", extra={"action": "heartbeat_failed"})
            ended.wait(max(0.0, interval - (time.monotonic() - began)))

    def beat(self) -> None:
        packs = self._in_flight.packs()
        claims = self._in_flight.claims()
        if not packs and not claims:
            return
        lost, _ = self._store.heartbeat(
            self._worker,
            [lease for held in packs for lease in held.leases],
            [(claim.backfill.id, claim.attempt) for claim in claims],
            self._lease_seconds,
        )
        for held in packs:
            gone = [slice_id for slice_id, _ in held.leases if slice_id in lost]
            if gone and not held.finishing and not held.given_up:
                self._give_up(held, len(gone))

    def sweep(self) -> None:
        swept = self._store.sweep(self._policy)
        if swept.leases_lost or swept.backfills_ended:
            log.warning(
                "swept %d lost leases, ended %d backfills",
                swept.leases_lost,
                swept.backfills_ended,
                extra={"action": "swept", "leases_lost": swept.leases_lost},
            )

    def _give_up(self, held: PackInFlight, lost: int) -> None:
        held.given_up = True
        log.warning(
            "%d slices of pack %s were lost to another worker",
            lost,
            held.pack.id,
            extra=about("lease_lost", held.pack.backfill),
        )
        try:
            self._engine.cancel(held.pack.id)
        except RefillError as exc:
            log.warning("cancel failed: %s", exc.message, extra={"action": "cancel_failed"})
