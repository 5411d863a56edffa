"""What this worker holds at the moment: the packs it runs, the backfills it plans or seals."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from refill.store.records import BackfillClaim, Pack


@dataclass(slots=True)
class PackInFlight:
    pack: Pack
    since: float = field(default_factory=time.monotonic)
    finishing: bool = False  # its receipts are on their way: a heartbeat may miss it now
    given_up: bool = False  # lost, or cut short by a stop: what it returns is not wanted
    thread: int = field(default_factory=threading.get_ident)  # that runs it
    stage: str = "prepare"  # then "run", then "publish"
    moved: int | None = None  # the engine's word on its progress
    moved_at: float = field(default_factory=time.monotonic)
    stalled: bool = False  # it made no progress and is to fail
    engine_died: bool = False  # under it, or beside it
    cut_at: float | None = None  # when it was told to end
    abandoned: bool = False  # it did not; its slices went on without it

    def move(self, stage: str) -> None:
        self.stage = stage
        self.moved_at = time.monotonic()

    @property
    def leases(self) -> list[tuple[int, int]]:
        return [(claimed.slice.id, claimed.slice.attempt) for claimed in self.pack.slices]


@dataclass(slots=True)
class ClaimInFlight:
    """A backfill that is planned or sealed, and the thread that does it."""

    claim: BackfillClaim
    thread: int
    free: Callable[[], None]  # its seat, for the next
    since: float = field(default_factory=time.monotonic)
    stalled: bool = False
    cut_at: float | None = None
    abandoned: bool = False


class InFlight:
    """Shared by all threads of a worker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._packs: dict[str, PackInFlight] = {}
        self._claims: dict[int, BackfillClaim] = {}
        self._working: list[ClaimInFlight] = []
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

    def begin_claim(self, working: ClaimInFlight) -> None:
        with self._lock:
            self._working.append(working)

    def end_claim(self, working: ClaimInFlight) -> bool:
        """False: it was abandoned meanwhile, and somebody else has seen to it."""
        with self._lock:
            if working.abandoned:
                return False
            self._working.remove(working)
        self.remove_claim(working.claim)
        return True

    def abandon(self, held: "PackInFlight | ClaimInFlight") -> bool:
        """Takes it from the thread that does not come back; False: it just did."""
        with self._lock:
            if isinstance(held, ClaimInFlight):
                if held not in self._working:
                    return False
                self._working.remove(held)
            elif held.finishing or held.pack.id not in self._packs:
                return False
            held.abandoned = True
        if isinstance(held, ClaimInFlight):
            self.remove_claim(held.claim)
        return True

    def finish(self, held: PackInFlight) -> bool:
        """Its receipts are on their way; False: it was abandoned meanwhile."""
        with self._lock:
            if held.abandoned:
                return False
            held.finishing = True
        return True

    def working(self) -> list[ClaimInFlight]:
        with self._lock:
            return list(self._working)

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
