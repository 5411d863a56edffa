"""The engine: packs on Spark, from as many threads as the worker has slots."""

import logging
import math
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from refill.connectors.kit.contract import Connector, Context
from refill.domain.errors import EngineUnavailable, Misconfigured, RefillError, TransformFailed
from refill.domain.slice import Receipt
from refill.domain.spec import Spec
from refill.packs.assignment import Assignment
from refill.packs.watch import stalled
from refill.settings import Settings
from refill.spark.analysis import Analysis, Overdue
from refill.spark.lane_fused import run_fused
from refill.spark.lane_sql import SqlLane
from refill.spark.session import SparkLink, ignore_pandas_warning, open_link
from refill.spark.tracebacks import missing_in, process_ended
from refill.spark.warm_up import WarmUp

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

ANALYSIS_SECONDS = 60.0  # Spark folds constants while it plans, and cannot be interrupted there
STUCK_SECONDS = 60.0  # a cancelled task is gone within a few


class SparkEngine:
    """Implements `Engine`."""

    def __init__(self, settings: Settings, connectors: Mapping[str, Connector]) -> None:
        self._settings = settings
        self._connectors = connectors
        self._link: SparkLink | None = None
        self._starting = threading.Lock()
        self._cancelled: set[str] = set()
        self._warm_up = WarmUp(connectors.values())
        self._in_sql: set[str] = set()  # packs whose rows go through the JVM
        self._cut_at: dict[str, float] = {}  # packs that were told to end
        self._stuck = threading.Event()  # an analysis that nothing can end

    def start(self) -> None:
        with self._starting:
            if self._link is None:
                self._link = open_link(self._settings)
                self.keep_warm()

    @property
    def cores(self) -> int:
        return self._linked().cores()

    def alive(self) -> bool:
        """A JVM that does not let go of what was cancelled is as good as lost: it takes no part of
        its cores back."""
        return self._link is not None and self._link.alive() and not self._is_stuck()

    def run(self, assignment: Assignment) -> list[Receipt]:
        link = self._linked()
        began = time.monotonic()
        ignore_pandas_warning()
        source, sink = (
            self._connector(assignment.source_type),
            self._connector(assignment.sink_type),
        )
        try:
            if assignment.job.spec.transform is not None:
                self._in_sql.add(assignment.pack_id)
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
            if process_ended(str(exc)):
                # the task's own watch ended it, where it had the time to
                if time.monotonic() - began > assignment.stall_seconds:
                    raise stalled(assignment.stall_seconds) from exc
                raise EngineUnavailable(
                    f"The process that ran {len(assignment.tickets)} slices ended, most likely for "
                    "want of memory; they are tried again."
                ) from exc
            raise EngineUnavailable(
                f"Spark lost the work on {len(assignment.tickets)} slices; they are tried again."
            ) from exc
        finally:
            self._cancelled.discard(assignment.pack_id)
            self._in_sql.discard(assignment.pack_id)
            self._cut_at.pop(assignment.pack_id, None)

    def cancel(self, pack_id: str) -> None:
        if self._link is not None and self._link.alive():
            self._cancelled.add(pack_id)
            self._cut_at.setdefault(pack_id, time.monotonic())
            self._link.cancel_tag(pack_id)

    def progress(self, pack_id: str) -> int | None:
        if self._link is None or pack_id not in self._in_sql:
            return None
        return self._link.progress(pack_id)

    def check_transform(
        self, spec: Spec, source_options: Mapping[str, Any], context: Context
    ) -> "pa.Schema":
        link = self._linked()
        ignore_pandas_warning()
        from refill.spark.lane_sql import delivered_schema

        source = self._connector(spec.database_type)
        analysis = Analysis(lambda: delivered_schema(link, spec, source, source_options, context))
        try:
            return analysis.result(ANALYSIS_SECONDS)
        except Overdue as exc:
            self._stuck.set()
            raise TransformFailed(
                f"Spark did not get through the SQL in {ANALYSIS_SECONDS:g} s without a row; "
                "look for constant expressions that take long, and simplify them."
            ) from exc

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

    def _is_stuck(self) -> bool:
        eldest = min(self._cut_at.copy().values(), default=math.inf)
        return self._stuck.is_set() or time.monotonic() - eldest > STUCK_SECONDS

    def _linked(self) -> SparkLink:
        if self._link is None:
            raise EngineUnavailable("Spark is not started.")
        return self._link

    def _connector(self, type_name: str) -> Connector:
        if type_name not in self._connectors:
            raise Misconfigured(f"There is no connector {type_name!r} here; install its extra.")
        return self._connectors[type_name]
