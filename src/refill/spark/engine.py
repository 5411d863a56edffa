"""The engine: packs on Spark, from as many threads as the worker has slots."""

import logging
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from refill.connectors.kit.contract import Connector, Context
from refill.domain.errors import EngineUnavailable, Misconfigured, RefillError
from refill.domain.slice import Receipt
from refill.domain.spec import Spec
from refill.packs.assignment import Assignment
from refill.settings import Settings
from refill.spark.lane_fused import run_fused
from refill.spark.lane_sql import SqlLane
from refill.spark.session import SparkLink, ignore_pandas_warning, open_link
from refill.spark.tracebacks import missing_in
from refill.spark.warm_up import WarmUp

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)


class SparkEngine:
    """Implements `Engine`."""

    def __init__(self, settings: Settings, connectors: Mapping[str, Connector]) -> None:
        self._settings = settings
        self._connectors = connectors
        self._link: SparkLink | None = None
        self._starting = threading.Lock()
        self._cancelled: set[str] = set()
        self._warm_up = WarmUp(connectors.values())

    def start(self) -> None:
        with self._starting:
            if self._link is None:
                self._link = open_link(self._settings)
                self.keep_warm()

    @property
    def cores(self) -> int:
        return self._linked().cores()

    def alive(self) -> bool:
        return self._link is not None and self._link.alive()

    def run(self, assignment: Assignment) -> list[Receipt]:
        link = self._linked()
        ignore_pandas_warning()
        source, sink = (
            self._connector(assignment.source_type),
            self._connector(assignment.sink_type),
        )
        try:
            if assignment.job.spec.transform is not None:
                lane = SqlLane(
                    link, assignment, source, sink, lambda: assignment.pack_id in self._cancelled
                )
                return lane.run()
            with link.tagged(link.session, assignment.pack_id):
                return run_fused(link.session, assignment, source, sink)
        except RefillError:
            raise
        except Exception as exc:
            link.note(exc)
            log.warning(
                "Spark lost pack %s",
                assignment.pack_id,
                exc_info=exc,
                extra={
                    "action": "pack_lost",
                    "backfill_id": assignment.job.backfill_id,
                    "backfill_uid": assignment.job.backfill_uid,
                },
            )
            if (missing := missing_in(str(exc))) is not None:
                raise missing from exc
            raise EngineUnavailable(
                f"Spark lost the work on {len(assignment.tickets)} slices; they are tried again."
            ) from exc
        finally:
            self._cancelled.discard(assignment.pack_id)

    def cancel(self, pack_id: str) -> None:
        if self._link is not None and self._link.alive():
            self._cancelled.add(pack_id)
            self._link.cancel_tag(pack_id)

    def check_transform(
        self, spec: Spec, source_options: Mapping[str, Any], context: Context
    ) -> "pa.Schema":
        link = self._linked()
        ignore_pandas_warning()
        from refill.spark.lane_sql import delivered_schema

        return delivered_schema(
            link, spec, self._connector(spec.database_type), source_options, context
        )

    def keep_warm(self) -> None:
        link = self._linked()
        ignore_pandas_warning()
        cores = link.cores()
        # tasks that wait a moment, so that each lands in a Python worker of its own
        link.session.range(0, cores, 1, cores).mapInArrow(self._warm_up, "done boolean").collect()

    def stop(self) -> None:
        link, self._link = self._link, None
        if link is not None and link.alive():
            link.stop()

    def _linked(self) -> SparkLink:
        if self._link is None:
            raise EngineUnavailable("Spark is not started.")
        return self._link

    def _connector(self, type_name: str) -> Connector:
        if type_name not in self._connectors:
            raise Misconfigured(f"There is no connector {type_name!r} here; install its extra.")
        return self._connectors[type_name]
