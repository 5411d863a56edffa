"""Snapshots that backfills without a key are read under: held open here as long as those run."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from refill.connectors.kit.contract import Source
from refill.domain.errors import SourceRefused, Superseded
from refill.domain.pipeline import Spec
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

    def hold(self, claim: BackfillClaim, spec: Spec, open_source: Callable[[], Source]) -> str:
        """Exports a snapshot; it lives until it is let go, or until this worker ends."""
        source = open_source()
        try:
            snapshot = source.hold_snapshot(spec)
            if snapshot is None:
                raise SourceRefused(
                    "The table has no key to slice it by, and its source has no snapshots; "
                    "give the backfill a sort_column."
                )
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
