"""The backfill: one request to re-process history, and the states it goes through."""

import dataclasses
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Self

from refill.domain.errors import Conflict
from refill.domain.pipeline import Kind
from refill.domain.spec import SinkSpec, Spec, TransferSpec


class Status(StrEnum):
    CREATED = "created"
    SCHEDULED = "scheduled"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def active(self) -> bool:
        """It holds its dates, or its table: no other may cover them."""
        return self in ACTIVE


ACTIVE = frozenset({Status.CREATED, Status.SCHEDULED, Status.RUNNING, Status.PAUSED})

# Where each state may go. Resuming and retrying lead to CREATED while nothing is planned yet,
# else to SCHEDULED; the next claim makes it RUNNING. A paused backfill whose running slices
# were the last ones ends all the same.
TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.CREATED: frozenset(
        {Status.SCHEDULED, Status.COMPLETED, Status.PAUSED, Status.FAILED, Status.CANCELLED}
    ),
    Status.SCHEDULED: frozenset(
        {Status.RUNNING, Status.COMPLETED, Status.PAUSED, Status.FAILED, Status.CANCELLED}
    ),
    Status.RUNNING: frozenset({Status.COMPLETED, Status.PAUSED, Status.FAILED, Status.CANCELLED}),
    Status.PAUSED: frozenset(
        {
            Status.CREATED,
            Status.SCHEDULED,
            Status.COMPLETED,
            Status.FAILED,
            Status.CANCELLED,
        }
    ),
    Status.FAILED: frozenset({Status.CREATED, Status.SCHEDULED, Status.CANCELLED}),
    Status.COMPLETED: frozenset(),
    Status.CANCELLED: frozenset(),
}


class Move(StrEnum):
    """What somebody may do to a backfill."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    RETRY = "retry"


class Origin(StrEnum):
    """Who asked for it."""

    REQUEST = "request"
    INITIAL = "initial"  # a sink created with initial_backfill
    SCHEDULE = "schedule"  # recurring runs of a transfer


class Order(StrEnum):
    NEWEST_FIRST = "newest_first"
    OLDEST_FIRST = "oldest_first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Summed from the slices, never incremented; frozen when the backfill ends.

    `slices_running` is what really runs: of each pack claimed, one slice.
    """

    slices_total: int = 0
    slices_pending: int = 0
    slices_claimed: int = 0
    slices_running: int = 0
    slices_completed: int = 0
    slices_failed: int = 0
    slices_cancelled: int = 0
    rows_read: int = 0
    rows_delivered: int = 0
    rows_filtered: int = 0
    rows_rejected: int = 0
    bytes_written: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    id: int
    uid: str  # the sink dialect's id, a UUID
    team_id: int
    kind: Kind
    pipeline_id: str  # the sink's id, or the transfer's as text
    pipeline_name: str
    origin: Origin = Origin.REQUEST
    status: Status = Status.CREATED
    spec: Spec
    range_start: date | None = None
    range_end: date | None = None
    order: Order = Order.NEWEST_FIRST
    max_concurrent: int | None = None
    reason: str | None = None
    slices_planned: int = 0  # transfers: the number of dates from the start
    planned: bool = False
    rows_estimated: int = 0
    error: str | None = None
    error_code: str | None = None
    created_at: datetime
    created_user_id: int | None = None
    updated_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    paused_at: datetime | None = None
    completed_at: datetime | None = None
    failed_at: datetime | None = None
    cancelled_at: datetime | None = None
    cancelled_user_id: int | None = None
    idle_seconds: float = 0.0  # since it started: paused, or over until it was retried

    @property
    def dates(self) -> tuple[date, ...]:
        """What a transfer's runs are of, in the order they run; a sink's has none."""
        return self.spec.dates if isinstance(self.spec, TransferSpec) else ()

    @property
    def sort_columns(self) -> tuple[str, ...]:
        """What a sink's slices go by; a transfer's go by date."""
        return self.spec.read.sort_columns if isinstance(self.spec, SinkSpec) else ()

    def allows(self, move: Move) -> bool:
        match move:
            case Move.PAUSE:
                return Status.PAUSED in TRANSITIONS[self.status]
            case Move.RESUME:
                return self.status is Status.PAUSED
            case Move.CANCEL:
                return Status.CANCELLED in TRANSITIONS[self.status]
            case Move.RETRY:
                return self.status is Status.FAILED

    def has_made(self, move: Move) -> bool:
        """It is paused, or goes on, already: asked again, that changes nothing."""
        if move is Move.PAUSE:
            return self.status is Status.PAUSED
        return move is Move.RESUME and self.status.active and self.status is not Status.PAUSED

    def with_status(self, status: Status) -> Self:
        """A copy in another state, if TRANSITIONS has the way there."""
        if status not in TRANSITIONS[self.status]:
            allowed = ", ".join(sorted(TRANSITIONS[self.status])) or "nothing: it is final"
            raise Conflict(
                f"A backfill that is {self.status} cannot become {status}; "
                f"from {self.status} it can become: {allowed}.",
                field="state",
                other=self.status,
            )
        return dataclasses.replace(self, status=status)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedBackfill(Backfill):
    """With how far it is. Apart from the plain record: summing a big backfill costs more than a
    claim of it."""

    counters: Counters
