"""Planning a claimed backfill: its slices, in the store, in one transaction."""

import dataclasses
import logging
from collections.abc import Callable

from refill.connectors.kit.contract import Source
from refill.domain.backfill import Backfill
from refill.domain.errors import SourceChanged
from refill.domain.slice import Dated, Extent
from refill.domain.spec import KeyedRead, QueryRead, SinkSpec, Spec, TransferSpec
from refill.domain.table import Keyless
from refill.packs.pool import Pool, source_of
from refill.planning.conditions import check_filter
from refill.planning.freeze import freeze_keyed, freeze_named
from refill.planning.plan import PlannedExtent, PlanSettings, plan_dates, plan_table
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
            source.get().check(spec.read)
            extents, rows_estimated = self._extents(claim, spec, ends, source.get())
        frozen = dataclasses.replace(backfill, spec=spec)
        self._prepared.ensure(frozen, ends)
        planned = [
            PlannedSlice(
                extent=part.extent,
                target=target_of(spec, part.extent),
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
        if isinstance(spec, TransferSpec):
            return plan_dates(spec.dates), 0
        read, snapshot = spec.read, None
        if not read.sort_columns and read.table.keyless is Keyless.CUT:
            # the snapshot first: parts counted under it cannot be fewer than it sees
            snapshot = self._snapshots.hold(claim, read, lambda: _open_source(ends))
        settings = self._settings.paced(spec.max_rows_per_second)
        bounds = source.bounds(read, settings.boundaries_wanted)
        planned = plan_table(
            read, bounds, settings, lambda slices: source.cut(read, bounds, slices, snapshot)
        )
        return planned, bounds.rows_estimated


def complete(spec: Spec, source: Source) -> Spec:
    """What could not be frozen at submission, because the source was away, is frozen now."""
    read = spec.read
    if read.fields:
        return spec
    if isinstance(read, QueryRead):
        described = read.model_copy(update={"fields": source.describe_query(read.query)})
        return spec.model_copy(update={"read": described})
    found = source.find_table(read.table.schema_name, read.table.name)
    if found is None:
        raise SourceChanged(
            f"There is no table {read.name}, or it may not be read; see to it and retry."
        )
    if isinstance(read, KeyedRead):
        check_filter(spec.filter, found.columns)
        return spec.model_copy(update={"read": freeze_keyed(read, found)})
    return spec.model_copy(update={"read": freeze_named(read, found, read.date_column)})


def target_of(spec: Spec, extent: Extent) -> str:
    """What the slice writes into, as the store fences it."""
    if isinstance(spec, SinkSpec):
        return f"sink:{spec.sink_id}/{spec.read.name}"
    assert isinstance(extent, Dated)
    day = extent.date.isoformat()
    return f"destination:{spec.destination_id}/{spec.destination_table}/{day}"


def _open_source(ends: Ends) -> Source:
    assert ends.source.open_source is not None
    options = ends.source.options_model(**ends.source_options)
    return ends.source.open_source(options, ends.context)
