"""The SQL store: one implementation of the port for SQLite and PostgreSQL."""

from typing import Any

from refill.store import schema
from refill.store.access import Access
from refill.store.answers import Answers
from refill.store.backfills import Backfills
from refill.store.claims import Claims
from refill.store.finishing import Finishing
from refill.store.gauges import GaugesReader
from refill.store.notices import Notices
from refill.store.pipelines import Pipelines
from refill.store.rates import Rates
from refill.store.reconciling import Reconciling
from refill.store.slices import Slices
from refill.store.sweeping import Sweeping


class SqlStore(
    Access,
    Rates,
    Pipelines,
    Backfills,
    Slices,
    Answers,
    Claims,
    Finishing,
    Reconciling,
    Sweeping,
    Notices,
    GaugesReader,
):
    """The store, composed of its parts. Safe to use from many threads."""

    def migrate(self) -> None:
        schema.migrate(self._backend)

    def check(self) -> dict[str, Any]:
        with self._backend.read() as connection:
            return {
                "backend": self._backend.name,
                "version": self._backend.version(connection),
                "schema": schema.current(connection),
                "newest_schema": schema.HEAD,
            }

    def close(self) -> None:
        self._backend.close()
