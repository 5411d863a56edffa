"""What this worker holds at the moment: the packs it runs, the backfills it plans or seals."""

import threading
import time
from dataclasses import dataclass, field

from refill.store.records import BackfillClaim, Pack


@dataclass(slots=True)
class PackInFlight:
    pack: Pack
    since: float = field(default_factory=time.monotonic)
    finishing: bool = False  # its receipts are on their way: a heartbeat may miss it now
    given_up: bool = False  # lost, or cut short by a stop: what it returns is not wanted
    stall_told: bool = False

    @property
    def leases(self) -> list[tuple[int, int]]:
        return [(claimed.slice.id, claimed.slice.attempt) for claimed in self.pack.slices]


class InFlight:
    """Shared by all threads of a worker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._packs: dict[str, PackInFlight] = {}
        self._claims: dict[int, BackfillClaim] = {}
        self._idle_since = time.monotonic()

    def add_pack(self, pack: Pack) -> PackInFlight:
        held = PackInFlight(pack)
        with self._lock:
            self._packs[pack.id] = held
        return held

    def remove_pack(self, held: PackInFlight) -> None:
        with self._lock:
            self._packs.pop(held.pack.id, None)
            self._idle_since = time.monotonic()

    def add_claim(self, claim: BackfillClaim) -> None:
        with self._lock:
            self._claims[claim.backfill.id] = claim

    def remove_claim(self, claim: BackfillClaim) -> None:
        """A newer claim of the same backfill stays: its heartbeat is not this one's to end."""
        with self._lock:
            if self._claims.get(claim.backfill.id) is claim:
                del self._claims[claim.backfill.id]

    def packs(self) -> list[PackInFlight]:
        with self._lock:
            return list(self._packs.values())

    def claims(self) -> list[BackfillClaim]:
        with self._lock:
            return list(self._claims.values())

    def idle_seconds(self) -> float:
        """Since the last pack ended; 0 while one runs."""
        with self._lock:
            return 0.0 if self._packs else time.monotonic() - self._idle_since
