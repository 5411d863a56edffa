"""What goes into the store and comes out of it, beside the domain's own records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Generic, TypeVar

from refill.domain.backfill import Backfill, Order, Origin, Status
from refill.domain.pipeline import Kind
from refill.domain.slice import Extent, Slice
from refill.domain.spec import Spec
from refill.domain.table import Table

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    items: tuple[T, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCatalogue:
    """The tables of a database as they were at a time; None: they were never read."""

    tables: tuple[Table, ...]
    at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBackfill:
    """What `insert_backfill` needs. `holds` are the rows of the unique index that keep it alone:
    for a sink its one table, for a transfer its dates."""

    uid: str
    team_id: int
    kind: Kind
    pipeline_id: str
    pipeline_name: str
    origin: Origin = Origin.REQUEST
    spec: Spec
    range_start: date | None = None
    range_end: date | None = None
    order: Order = Order.NEWEST_FIRST
    max_concurrent: int | None = None
    reason: str | None = None
    slices_planned: int = 0
    created_user_id: int | None = None
    holds: tuple[str, ...] = ()
    seals: bool = False  # the sink wants a last step once every slice is done


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSlice:
    extent: Extent
    target: str
    rows_estimated: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillClaim:
    """A lease on a backfill as a whole: to plan it, or to seal it."""

    backfill: Backfill
    attempt: int
    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedSlice:
    slice: Slice  # with its new attempt
    fence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """Slices of one backfill that one Spark task executes in a row."""

    id: str
    backfill: Backfill
    rows_rejected: int  # by all of the backfill's slices until now
    slices: tuple[ClaimedSlice, ...]
    alone: bool = False  # nothing may run beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class PackLimits:
    """A pack ends at `max_slices` or as soon as it has `max_rows` estimated rows, and takes at
    most its share of what is pending, so that the slots finish together."""

    max_slices: int = 256
    max_rows: int = 250_000
    slots: int = 2
    weights: Mapping[int, float] = field(default_factory=dict)  # of teams; 1 where none is given
    alone: bool = False  # nothing else runs here: one slice of those that must have that


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What became of the receipts: which were accepted, and where the backfill stands now."""

    accepted: frozenset[int]
    superseded: frozenset[int]
    status: Status
    sealable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsure:
    """Slices of one backfill that may have been delivered by an attempt nobody heard of again."""

    backfill: Backfill
    slices: tuple[ClaimedSlice, ...]  # as their last attempt left them


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    leases_lost: int = 0
    backfills_ended: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineGauges:
    """A sink or transfer by its newest backfill."""

    team_id: int
    kind: str
    name: str
    status: str
    progress: float
    lag_seconds: float  # since an active one last moved; 0 when none is active
    rows_rejected: int
    slices_failed: int
    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """For /metrics: one query over what is there now."""

    backfills_by_status: Mapping[str, int] = field(default_factory=dict)
    slices_by_state: Mapping[str, int] = field(default_factory=dict)
    rows_read: int = 0
    rows_delivered: int = 0
    rows_rejected: int = 0
    attempts: int = 0
    failures: int = 0
    leases_lost: int = 0
    slice_seconds: float = 0.0
    slices_completed: int = 0
    queue_age_seconds: float = 0.0
    pipelines: tuple[PipelineGauges, ...] = ()  # a bounded number
    pipelines_left_out: int = 0


UNANSWERED = 0  # the status of a reservation


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """An answer kept under an Idempotency-Key; with the status UNANSWERED, its reservation."""

    body_hash: str
    status: int
    body: str
