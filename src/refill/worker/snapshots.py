"""Snapshots that backfills without a key are read under: held open here as long as those run."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from refill.connectors.kit.contract import Source
from refill.domain.errors import Superseded
from refill.domain.spec import KeyedRead
from refill.packs.pool import close_quietly
from refill.store.records import BackfillClaim


@dataclass(frozen=True, slots=True)
class Holder:
    source: Source
    attempt: int  # of the claim that plans under it


class Snapshots:
    """One per backfill, of its newest claim: a thread whose claim was lost touches no other's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: dict[int, Holder] = {}

    def hold(
        self, claim: BackfillClaim, read: KeyedRead, open_source: Callable[[], Source]
    ) -> str | None:
        """Exports a snapshot, where the source has such a thing; it lives until it is let go, or
        until this worker ends."""
        source = open_source()
        try:
            snapshot = source.hold_snapshot(read)
            previous = self._keep(claim, source)
        except BaseException:
            close_quietly(source)
            raise
        if previous is not None:
            close_quietly(previous.source)
        return snapshot

    def _keep(self, claim: BackfillClaim, source: Source) -> Holder | None:
        """The older one that it takes the place of; Superseded when a newer one is there."""
        backfill_id = claim.backfill.id
        with self._lock:
            previous = self._holders.get(backfill_id)
            if previous is not None and previous.attempt > claim.attempt:
                raise Superseded("A newer claim of the backfill holds its snapshot.")
            self._holders[backfill_id] = Holder(source, claim.attempt)
        return previous

    def held(self) -> list[int]:
        with self._lock:
            return list(self._holders)

    def give_up(self, claim: BackfillClaim) -> None:
        """The claim came to nothing: its snapshot goes, a newer claim's stays."""
        with self._lock:
            holder = self._holders.get(claim.backfill.id)
            if holder is None or holder.attempt != claim.attempt:
                return
            del self._holders[claim.backfill.id]
        close_quietly(holder.source)

    def drop(self, backfill_id: int) -> None:
        """The backfill has ended."""
        with self._lock:
            holder = self._holders.pop(backfill_id, None)
        if holder is not None:
            close_quietly(holder.source)

    def close(self) -> None:
        for backfill_id in self.held():
            self.drop(backfill_id)
