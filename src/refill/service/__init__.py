"""Use cases: what refill does when asked. It knows neither HTTP nor Spark."""

from collections.abc import Mapping

from refill.clock import Clock, system_clock
from refill.connectors.contract import Connector
from refill.service.access import Access
from refill.settings import Settings
from refill.store.port import Store


class Service:
    """The nouns of refill, each with what can be done to it."""

    def __init__(
        self,
        *,
        store: Store,
        connectors: Mapping[str, Connector],
        settings: Settings,
        clock: Clock = system_clock,
    ) -> None:
        self.store = store
        self.connectors = connectors
        self.settings = settings
        self.clock = clock
        self.access = Access(store=store, clock=clock)
