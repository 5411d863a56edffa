"""What operators look at: is the store there, and how much is there to do."""

from typing import Any

from refill.store.port import Store
from refill.store.records import Gauges

__all__ = ["Gauges", "Operations"]


class Operations:
    def __init__(self, *, store: Store) -> None:
        self._store = store

    def check(self) -> dict[str, Any]:
        """What the store says of itself; StoreBusy when it is away."""
        return self._store.check()

    def gauges(self) -> Gauges:
        """Read from the store at this moment."""
        return self._store.gauges()
