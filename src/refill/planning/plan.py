"""Cutting a backfill into slices. Preview and execution call the same functions."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date

from refill.domain.slice import Dated, Extent, KeyRange, NullKeys, Whole
from refill.domain.spec import KeyedRead
from refill.domain.table import Keyless
from refill.planning.bounds import Bounds

SLICE_SECONDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSettings:
    """A slice is about five seconds of work, capped by rows and by bytes: it bounds a cancel, a
    retry, a Kafka transaction and a frozen progress bar. Small tables still give every slot
    several slices, so that skew evens out."""

    slots: int = 2
    rows_per_slice: int = 500_000
    bytes_per_slice: int = 128 * 1024 * 1024
    slices_per_slot: int = 4
    smallest_slice_rows: int = 20_000

    def slices_wanted(self, bounds: Bounds) -> int:
        by_size = max(
            math.ceil(bounds.rows_estimated / self.rows_per_slice),
            math.ceil(bounds.bytes_estimated / self.bytes_per_slice),
        )
        worth_sharing = bounds.rows_estimated // self.smallest_slice_rows
        return max(1, by_size, min(self.slots * self.slices_per_slot, worth_sharing))

    def paced(self, rows_per_second: int | None) -> "PlanSettings":
        """A slice that may only go so fast is made shorter, so that it stays about as long."""
        if rows_per_second is None:
            return self
        rows = max(1, SLICE_SECONDS * rows_per_second)
        return replace(self, rows_per_slice=min(self.rows_per_slice, rows))

    @property
    def boundaries_wanted(self) -> int:
        """How many sampled keys to ask a source for: enough to cut a very large table."""
        return 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedExtent:
    extent: Extent
    rows_estimated: int


def plan_table(
    read: KeyedRead,
    bounds: Bounds,
    settings: PlanSettings,
    cut: Callable[[int], tuple[PlannedExtent, ...]],
) -> tuple[PlannedExtent, ...]:
    """The slices of a table. `cut`: how its source makes so many parts of it itself."""
    wanted = settings.slices_wanted(bounds)
    if not read.sort_columns and read.table.keyless is Keyless.CUT:
        return cut(wanted)
    if not read.sort_columns or (wanted == 1 and not read.partial):
        return (PlannedExtent(extent=Whole(), rows_estimated=bounds.rows_estimated),)
    return _plan_keys(read, bounds, wanted)


def plan_dates(dates: Sequence[date]) -> tuple[PlannedExtent, ...]:
    """One slice per date, in the order that the backfill runs them."""
    return tuple(PlannedExtent(extent=Dated(date=day), rows_estimated=0) for day in dates)


def _plan_keys(read: KeyedRead, bounds: Bounds, wanted: int) -> tuple[PlannedExtent, ...]:
    """Half-open key ranges that leave nothing out: the first is open below and the last open
    above, unless the backfill itself has a start or an end; rows with a NULL in the key come last.
    """
    inner = _cut(bounds.boundaries, wanted)
    start = None if read.start_position is None else (read.start_position,)
    end = None if read.end_position is None else (read.end_position,)
    lowers = [start, *inner]
    uppers = [*inner, end]
    share = math.ceil(bounds.rows_estimated / len(lowers))
    planned = [
        PlannedExtent(
            extent=KeyRange(
                lower=lower,
                upper=upper,
                lower_inclusive=position == 0 and start is not None,
            ),
            rows_estimated=share,
        )
        for position, (lower, upper) in enumerate(zip(lowers, uppers, strict=True))
    ]
    if bounds.may_have_nulls and not read.partial:
        planned.append(PlannedExtent(extent=NullKeys(), rows_estimated=0))
    return tuple(planned)


def _cut(boundaries: tuple[tuple[str, ...], ...], slices: int) -> tuple[tuple[str, ...], ...]:
    """Quantiles of the sample: one boundary fewer than there are slices."""
    cuts = min(slices - 1, len(boundaries))
    return tuple(boundaries[(cut + 1) * len(boundaries) // (cuts + 1)] for cut in range(cuts))
