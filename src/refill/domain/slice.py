"""The slice: the unit of work, of retry, of parallelism and of visibility."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from refill.domain.table import Record


class SliceState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"  # claimed; of a pack, one at a time really runs
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self in (SliceState.COMPLETED, SliceState.FAILED, SliceState.CANCELLED)


class KeyRange(Record):
    """Rows with lower < key <= upper, in the source's own order. None: open on that side.

    `lower_inclusive` is for the start of a partial backfill. Parts of the key are all NOT NULL.
    """

    kind: Literal["keys"] = "keys"
    lower: tuple[str, ...] | None = None
    upper: tuple[str, ...] | None = None
    lower_inclusive: bool = False


class NullKeys(Record):
    """The rest: rows in which any part of the key is NULL."""

    kind: Literal["nulls"] = "nulls"


class NativeExtent(Record):
    """A part of the source's own making: `native` is opaque to everybody else."""

    kind: Literal["native"] = "native"
    label: str  # what people call it: "pages"
    lower: str | None = None  # its ends, as people are shown them
    upper: str | None = None
    same_order: bool = False  # read again, its rows come in the same order
    native: Mapping[str, Any]


class Dated(Record):
    """One date."""

    kind: Literal["date"] = "date"
    date: date


class Whole(Record):
    """The whole relation in one slice."""

    kind: Literal["whole"] = "whole"


Extent = KeyRange | NullKeys | NativeExtent | Dated | Whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    id: int
    backfill_id: int
    index: int  # 0-based; its order within the backfill
    extent: Extent
    target: str
    state: SliceState = SliceState.PENDING
    attempt: int = 0  # rises with every claim; fences the store
    failures: int = 0  # the retry budget
    pack: str | None = None
    worker: str | None = None
    lease_until: datetime | None = None
    not_before: datetime | None = None
    rows_estimated: int = 0
    rows_read: int = 0
    rows_delivered: int = 0
    rows_filtered: int = 0
    rows_rejected: int = 0
    bytes_written: int = 0
    seconds: float = 0.0
    error: str | None = None
    error_code: str | None = None
    queued_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None


class Ticket(Record):
    """A claim as a task sees it. `nonce` names what this one execution stages."""

    slice_id: int
    index: int
    extent: Annotated[Extent, Field(discriminator="kind")]
    attempt: int
    target: str
    fence: int  # rises when the target passes from one backfill to another
    nonce: str
    staging: str | None = None  # what the sink's `stage` returned, on the worker


REJECTS_KEPT = 1000  # of a slice; what is beyond is only counted


class Reject(Record):
    """A row that could not be delivered: its key and why."""

    key: tuple[str | None, ...]
    reason: str
    detail: str | None = None


class Outcome(StrEnum):
    DONE = "done"
    FAILED = "failed"
    UNSTARTED = "unstarted"  # handed back: the pack's time was up
    SUPERSEDED = "superseded"  # stopped: something newer seemed to hold its place


class Fault(Record):
    """An error as data, on its way from a task to the store."""

    code: str
    message: str
    transient: bool
    retry_after_seconds: float | None = None

    @field_validator("message")
    @classmethod
    def _one_line(cls, message: str) -> str:
        """Other systems' words are part of it: what no database stores must not be in them."""
        return "".join(letter if letter.isprintable() else " " for letter in message)


class Receipt(Record):
    """What one execution of a slice returns. read = delivered + filtered + rejected."""

    slice_id: int
    attempt: int
    outcome: Outcome
    rows_read: int = 0
    rows_delivered: int = 0
    rows_filtered: int = 0
    rows_rejected: int = 0
    bytes_written: int = 0
    seconds: float = 0.0
    staged: str | None = None
    rejects: tuple[Reject, ...] = ()  # at most 1000 a slice; the count is exact
    fault: Fault | None = None
    extra: dict[str, Any] = Field(default_factory=dict)
