"""Use cases: what refill does when asked. It knows neither HTTP nor Spark."""

from collections.abc import Mapping

from refill.clock import Clock, system_clock
from refill.connectors.contract import Connector
from refill.service.access import Access
from refill.service.destinations import Destinations
from refill.service.runs import Runs
from refill.service.schedules import Schedules
from refill.service.source_look import SourceLook
from refill.service.transfer_backfills import TransferBackfills
from refill.service.transfers import Transfers
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
        look = SourceLook(store=store, connectors=connectors, settings=settings, clock=clock)
        self.destinations = Destinations(
            store=store, connectors=connectors, settings=settings, clock=clock
        )
        self.transfers = Transfers(
            store=store,
            destinations=self.destinations,
            look=look,
            clock=clock,
            max_window_days=settings.max_range_days,
        )
        self.transfer_backfills = TransferBackfills(
            store=store,
            transfers=self.transfers,
            destinations=self.destinations,
            look=look,
            clock=clock,
            max_range_days=settings.max_range_days,
        )
        self.runs = Runs(store=store, transfers=self.transfers)
        self.schedules = Schedules(store=store, prepare=self.transfer_backfills.prepare_recurring)
