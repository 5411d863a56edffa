"""Slices that ran at two deaths of an engine get a third chance with nothing beside them."""

import dataclasses
import threading
import time

from refill.store.port import WorkStore
from refill.store.records import Pack, PackLimits
from refill.worker.in_flight import InFlight

LOOK_SECONDS = 1.0  # between two looks whether there are any
EMPTY_SECONDS = 60.0  # how long nothing is claimed so that what runs may end


class Quarantine:
    """Asked by the one slot that claims: while it waits here, nobody else begins anything."""

    def __init__(
        self,
        store: WorkStore,
        in_flight: InFlight,
        *,
        worker: str,
        lease_seconds: float,
        stopping: threading.Event,
    ) -> None:
        self._store = store
        self._in_flight = in_flight
        self._worker = worker
        self._lease_seconds = lease_seconds
        self._stopping = stopping
        self._due = 0.0

    def claim(self, limits: PackLimits) -> Pack | None:
        now = time.monotonic()
        if now < self._due:
            return None
        self._due = now + LOOK_SECONDS
        if not self._store.any_quarantined() or not self._wait_until_empty():
            return None
        alone = dataclasses.replace(limits, alone=True)
        return self._store.claim_pack(self._worker, alone, self._lease_seconds)

    def _wait_until_empty(self) -> bool:
        deadline = time.monotonic() + EMPTY_SECONDS
        while self._in_flight.packs():
            if time.monotonic() >= deadline or self._stopping.wait(0.02):
                return False
        return True
