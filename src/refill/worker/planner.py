"""Planning a claimed backfill: its slices, in the store, in one transaction."""

import dataclasses
import logging
from collections.abc import Callable

from refill.connectors.kit.contract import Source
from refill.domain.backfill import Backfill
from refill.domain.errors import SourceChanged
from refill.domain.pipeline import Kind, Spec
from refill.domain.slice import Dated
from refill.domain.table import Table
from refill.packs.pool import Pool, source_of
from refill.planning.freeze import freeze_table
from refill.planning.plan import PlannedExtent, PlanSettings, plan_dates, plan_keys, plan_pages
from refill.store.port import WorkStore
from refill.store.records import BackfillClaim, PlannedSlice
from refill.worker.ends import Ends, EndsFinder
from refill.worker.prepared import Prepared
from refill.worker.snapshots import Snapshots

log = logging.getLogger(__name__)


class Planner:
    def __init__(
        self,
        *,
        store: WorkStore,
        ends: EndsFinder,
        pool: Pool,
        prepared: Prepared,
        snapshots: Snapshots,
        settings: PlanSettings,
    ) -> None:
        self._store = store
        self._ends = ends
        self._pool = pool
        self._prepared = prepared
        self._snapshots = snapshots
        self._settings = settings

    def plan(self, claim: BackfillClaim, save: Callable[[Callable[[], Backfill]], Backfill]) -> int:
        """Slices in the store, in one transaction; returns how many. `save` insists on it."""
        try:
            return self._plan(claim, save)
        except BaseException:
            # a snapshot that no slice will name would hold back the source's vacuum for good
            self._snapshots.give_up(claim)
            raise

    def _plan(
        self, claim: BackfillClaim, save: Callable[[Callable[[], Backfill]], Backfill]
    ) -> int:
        backfill = claim.backfill
        ends = self._ends.find(backfill)
        with source_of(self._pool, ends.source, ends.source_options, ends.context) as source:
            spec = complete(backfill.spec, source.get())
            source.get().check(spec)
            extents, rows_estimated = self._extents(claim, spec, ends, source.get())
        frozen = dataclasses.replace(backfill, spec=spec)
        self._prepared.ensure(frozen, ends)
        planned = [
            PlannedSlice(
                extent=part.extent,
                target=target_of(spec, part),
                rows_estimated=part.rows_estimated,
            )
            for part in extents
        ]
        save(
            lambda: self._store.save_plan(
                claim,
                planned,
                rows_estimated=rows_estimated,
                spec=None if spec is backfill.spec else spec,
            )
        )
        return len(planned)

    def _extents(
        self, claim: BackfillClaim, spec: Spec, ends: Ends, source: Source
    ) -> tuple[tuple[PlannedExtent, ...], int]:
        if spec.kind is Kind.TRANSFER:
            return plan_dates(spec), 0
        settings = self._settings.paced(spec.max_rows_per_second)
        if spec.sort_columns:
            bounds = source.bounds(spec, settings.boundaries_wanted)
            return plan_keys(bounds, spec, settings), bounds.rows_estimated
        # the snapshot first: pages counted under it cannot be fewer than it sees
        snapshot = self._snapshots.hold(claim, spec, lambda: _open_source(ends))
        bounds = source.bounds(spec, settings.boundaries_wanted)
        return plan_pages(bounds, snapshot, settings), bounds.rows_estimated


def complete(spec: Spec, source: Source) -> Spec:
    """What could not be frozen at submission, because the source was away, is frozen now."""
    table = spec.table
    if table is None or table.columns:
        return spec
    if spec.query is not None:
        described = table.model_copy(update={"columns": source.describe_query(spec.query)})
        return _with_columns(spec, described)
    found = source.find_table(table.schema_name, table.name)
    if found is None:
        raise SourceChanged(
            f"There is no table {table.full_name}, or it may not be read; see to it and retry."
        )
    if spec.kind is Kind.SINK:
        return freeze_table(spec, found)
    return _with_columns(spec, found)


def target_of(spec: Spec, part: PlannedExtent) -> str:
    """What the slice writes into, as the store fences it."""
    if isinstance(part.extent, Dated):
        return (
            f"destination:{spec.destination_id}/{spec.destination_table}/"
            f"{part.extent.date.isoformat()}"
        )
    table = spec.table.full_name if spec.table else ""
    return f"sink:{spec.sink_id}/{table}"


def _with_columns(spec: Spec, table: Table) -> Spec:
    wanted = {*spec.columns, spec.date_column or ""} - {""}
    missing = sorted(name for name in wanted if table.column(name) is None)
    if missing and spec.query is None:
        raise SourceChanged(
            f"{table.full_name} has no column {missing[0]}; mend the transfer, then start again."
        )
    columns = spec.columns or tuple(column.name for column in table.columns)
    return spec.model_copy(update={"table": table, "columns": columns})


def _open_source(ends: Ends) -> Source:
    assert ends.source.open_source is not None
    options = ends.source.options_model(**ends.source_options)
    return ends.source.open_source(options, ends.context)
