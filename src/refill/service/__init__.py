"""Use cases: what refill does when asked. It knows neither HTTP nor Spark."""

import os
from collections.abc import Mapping

from refill.clock import Clock, system_clock
from refill.connectors.kit.contract import Connector
from refill.domain.backfill import CountedBackfill
from refill.domain.progress import Progress, measure_progress
from refill.planning.plan import PlanSettings
from refill.service.access import Access
from refill.service.answers import Answers
from refill.service.backfills import Backfills
from refill.service.catalogue import Catalogue
from refill.service.config.config import Config
from refill.service.config.dated import DestinationSection, TransferSection
from refill.service.config.people import TeamSection, UserSection
from refill.service.config.sections import DatabaseSection, EndpointSection, SinkSection
from refill.service.databases import Databases
from refill.service.destinations import Destinations
from refill.service.endpoints import Endpoints
from refill.service.notifications import Notifications
from refill.service.operations import Operations
from refill.service.probes import Probes
from refill.service.references import References
from refill.service.runs import Runs
from refill.service.schedules import Schedules
from refill.service.sink_backfills import SinkBackfills
from refill.service.sink_checks import SinkChecks
from refill.service.sink_freezer import SinkFreezer
from refill.service.sinks import Sinks
from refill.service.transfer_backfills import TransferBackfills
from refill.service.transfer_freezer import TransferFreezer
from refill.service.transfer_views import TransferViews
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
        self._clock = clock
        self.operations = Operations(store=store)
        self.answers = Answers(store=store)
        self.access = Access(store=store, clock=clock)
        probes = Probes(seconds=settings.probe_seconds, per_team=settings.probes_per_team)
        self.catalogue = Catalogue(
            store=store, connectors=connectors, settings=settings, clock=clock, probes=probes
        )
        self.databases = Databases(
            store=store, connectors=connectors, catalogue=self.catalogue, clock=clock
        )
        references = References(store=store, connectors=connectors)
        self.endpoints = Endpoints(store=store, references=references, clock=clock)
        backfills = Backfills(store=store, connectors=connectors)
        self.sink_backfills = SinkBackfills(
            backfills=backfills,
            store=store,
            freezer=SinkFreezer(store=store, connectors=connectors, catalogue=self.catalogue),
            catalogue=self.catalogue,
            plan_settings=PlanSettings(slots=settings.slots or os.cpu_count() or 2),
        )
        self.sinks = Sinks(
            store=store,
            connectors=connectors,
            checks=SinkChecks(store=store, catalogue=self.catalogue, connectors=connectors),
            backfills=self.sink_backfills,
            references=references,
            clock=clock,
        )
        self.destinations = Destinations(
            store=store,
            connectors=connectors,
            catalogue=self.catalogue,
            references=references,
            clock=clock,
            probes=probes,
        )
        self.transfers = Transfers(
            store=store,
            destinations=self.destinations,
            catalogue=self.catalogue,
            clock=clock,
            max_window_days=settings.max_range_days,
        )
        self.transfer_backfills = TransferBackfills(
            backfills=backfills,
            store=store,
            transfers=self.transfers,
            freezer=TransferFreezer(
                store=store, destinations=self.destinations, catalogue=self.catalogue
            ),
            clock=clock,
            max_range_days=settings.max_range_days,
        )
        self.transfer_views = TransferViews(
            store=store, databases=self.databases, destinations=self.destinations
        )
        self.config = Config(
            (
                TeamSection(self.access),
                UserSection(self.access),
                DatabaseSection(self.databases),
                EndpointSection(self.endpoints),
                SinkSection(self.sinks, self.databases, self.endpoints),
                DestinationSection(self.destinations),
                TransferSection(
                    self.transfers, self.transfer_views, self.databases, self.destinations
                ),
            )
        )
        self.notifications = Notifications(store=store, clock=clock)
        self.runs = Runs(store=store, transfers=self.transfers)
        self.schedules = Schedules(store=store, prepare=self.transfer_backfills.prepare_recurring)

    def progress_of(self, backfill: CountedBackfill) -> Progress:
        """How far it is at this moment."""
        return measure_progress(backfill, self._clock())
