"""Snapshots that backfills without a key are read under: held open here as long as those run."""

import logging
import threading
from collections.abc import Callable

from refill.connectors.contract import Source
from refill.domain.errors import SourceRefused
from refill.engine.pool import close_quietly

log = logging.getLogger(__name__)


class Snapshots:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: dict[int, Source] = {}

    def hold(self, backfill_id: int, open_source: Callable[[], Source]) -> str:
        """Exports a snapshot; it lives until `drop`, or until this worker ends."""
        source = open_source()
        try:
            snapshot = source.hold_snapshot()
        except BaseException:
            close_quietly(source)
            raise
        if snapshot is None:
            close_quietly(source)
            raise SourceRefused(
                "The table has no key to slice it by, and its source has no snapshots; "
                "give the backfill a sort_column."
            )
        with self._lock:
            previous = self._holders.pop(backfill_id, None)
            self._holders[backfill_id] = source
        if previous is not None:
            close_quietly(previous)
        return snapshot

    def held(self) -> list[int]:
        with self._lock:
            return list(self._holders)

    def drop(self, backfill_id: int) -> None:
        with self._lock:
            source = self._holders.pop(backfill_id, None)
        if source is not None:
            close_quietly(source)

    def close(self) -> None:
        for backfill_id in self.held():
            self.drop(backfill_id)
