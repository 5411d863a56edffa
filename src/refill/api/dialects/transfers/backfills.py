"""Backfills over HTTP."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from refill.api.body import Body, body_of
from refill.api.dialects.transfers.forms import (
    Count,
    Day,
    DayText,
    Envelope,
    Id,
    TimeText,
    shorten,
    stamp,
    stamp_or_none,
    wrap,
)
from refill.api.dialects.transfers.router import needs, router
from refill.api.dialects.transfers.runs import date_of
from refill.api.gate import CallerParam, ServiceParam
from refill.api.paging import Cursor, Limit
from refill.api.route import RepeatedParam, UidParam
from refill.domain.access import Scope
from refill.domain.backfill import Backfill, CountedBackfill, Move, Order, Status
from refill.domain.errors import Invalid
from refill.domain.slice import Reject, Slice
from refill.planning.dates import DateRange, Only
from refill.service import Service
from refill.service.transfer_backfills import BackfillRequest, Preview

_MOVES = {"CANCELLED": Move.CANCEL, "PAUSED": Move.PAUSE, "RUNNING": Move.RESUME}
StatusWord = Literal["CREATED", "SCHEDULED", "RUNNING", "FAILED", "COMPLETED", "CANCELLED"]


class CreateTransferBackfill(Body):
    range_start: Day
    range_end: Day
    order: Order = Order.NEWEST_FIRST
    max_concurrent_runs: int | None = Field(None, ge=1, le=10_000)
    exclude_dates: list[Day] = Field(default_factory=list, max_length=10_000)
    only: Only = Only.ALL
    reason: str | None = Field(None, max_length=1000)
    dry_run: bool = False

    def to_request(self) -> BackfillRequest:
        return BackfillRequest(
            range=DateRange(start=self.range_start, end=self.range_end),
            order=self.order,
            only=self.only,
            exclude=frozenset(self.exclude_dates),
            max_concurrent=self.max_concurrent_runs,
            reason=self.reason,
        )


class UpdateTransferBackfill(Body):
    status: Literal[
        "CANCELLED", "PAUSED", "RUNNING", "CREATED", "SCHEDULED", "FAILED", "COMPLETED"
    ] = Field(description="CANCELLED, PAUSED, or RUNNING to resume; no other can be set")


class RetryTransferBackfill(Body):
    dates: list[Day] | None = Field(None, min_length=1, max_length=10_000)


class RunErrorAnswer(BaseModel):
    transfer_run_date: DayText
    error: str = Field(max_length=1000)


class TransferBackfillAnswer(BaseModel):
    transfer_backfill_id: int
    transfer_id: int
    range_start_date: DayText
    range_end_date: DayText
    created_time: TimeText
    created_user_id: int
    removed_time: TimeText | None
    removed_user_id: int | None
    start_time: TimeText | None
    end_time: TimeText | None
    status: StatusWord
    transfer_runs_total: Count
    transfer_runs_created: Count
    transfer_runs_completed: Count
    transfer_runs_failed: Count
    error_report: list[RunErrorAnswer]
    # ours
    progress: float = Field(ge=0, le=1)
    rows_total: Count
    rows_rejected: Count
    rows_per_second: float | None
    eta_seconds: float | None
    paused_time: TimeText | None
    reason: str | None


class TransferRejectAnswer(BaseModel):
    transfer_run_id: int
    transfer_run_date: DayText
    key: list[str | None]
    reason: str
    detail: str | None


class TransferRejectsAnswer(BaseModel):
    rejects: list[TransferRejectAnswer]
    next_cursor: str | None


class PlannedDateAnswer(BaseModel):
    date: DayText
    action: Literal["run", "skip"]
    reason: str
    replaces: Count | None


class TransferDryRunAnswer(BaseModel):
    dry_run: Literal[True]
    transfer_runs_total: Count
    dates: list[PlannedDateAnswer]
    blocked_by: int | None


@router.post(
    "/transfers/{transfer_id}/backfills",
    tags=["backfills"],
    **needs(Scope.TRANSFERS_WRITE),
)
def create_backfill(
    team_id: Id,
    transfer_id: Id,
    body: Annotated[CreateTransferBackfill, body_of(CreateTransferBackfill)],
    uid: UidParam,
    caller: CallerParam,
    service: ServiceParam,
) -> Envelope[TransferBackfillAnswer | TransferDryRunAnswer]:
    """Runs the dates of a range again; with `dry_run` it only says what would run."""
    backfills = service.transfer_backfills
    request = body.to_request()
    if body.dry_run:
        return wrap(show_preview(backfills.preview(caller.team_id, transfer_id, request)))
    made = backfills.submit(caller.team_id, transfer_id, request, uid=uid, user_id=caller.user_id)
    return wrap(show_backfill(service, made))


@router.get(
    "/transfers/{transfer_id}/backfills/latest",
    tags=["backfills"],
    **needs(Scope.TRANSFERS_READ),
)
def get_latest_backfill(
    team_id: Id, transfer_id: Id, caller: CallerParam, service: ServiceParam
) -> Envelope[TransferBackfillAnswer]:
    """The newest one of the transfer, in whatever status."""
    found = service.transfer_backfills.latest(caller.team_id, transfer_id)
    return wrap(show_backfill(service, found))


@router.get("/backfills", tags=["backfills"], **needs(Scope.TRANSFERS_READ))
def list_incomplete_backfills(
    team_id: Id, caller: CallerParam, service: ServiceParam
) -> Envelope[list[TransferBackfillAnswer]]:
    """CREATED, SCHEDULED, RUNNING and FAILED ones, newest first, at most 100."""
    found = service.transfer_backfills.list_incomplete(caller.team_id)
    return wrap([show_backfill(service, backfill) for backfill in found])


@router.get("/backfills/{backfill_id}", tags=["backfills"], **needs(Scope.TRANSFERS_READ))
def get_backfill(
    team_id: Id, backfill_id: Id, caller: CallerParam, service: ServiceParam
) -> Envelope[TransferBackfillAnswer]:
    found = service.transfer_backfills.get(caller.team_id, backfill_id)
    return wrap(show_backfill(service, found))


@router.patch("/backfills/{backfill_id}", tags=["backfills"], **needs(Scope.TRANSFERS_WRITE))
def update_backfill(
    team_id: Id,
    backfill_id: Id,
    body: Annotated[UpdateTransferBackfill, body_of(UpdateTransferBackfill)],
    caller: CallerParam,
    service: ServiceParam,
) -> Envelope[TransferBackfillAnswer]:
    """Cancels, pauses or resumes."""
    move = _MOVES.get(body.status)
    if move is None:
        service.transfer_backfills.get(caller.team_id, backfill_id)
        raise Invalid.of(
            "status", f"{body.status} cannot be set; set CANCELLED, PAUSED or RUNNING."
        )
    found = service.transfer_backfills.move(
        caller.team_id, backfill_id, move, user_id=caller.user_id
    )
    return wrap(show_backfill(service, found))


@router.post("/backfills/{backfill_id}/retries", tags=["backfills"], **needs(Scope.TRANSFERS_WRITE))
def retry_backfill(
    team_id: Id,
    backfill_id: Id,
    body: Annotated[RetryTransferBackfill, body_of(RetryTransferBackfill)],
    repeated: RepeatedParam,
    caller: CallerParam,
    service: ServiceParam,
) -> Envelope[TransferBackfillAnswer]:
    """Runs the failed dates of a FAILED backfill again, all or those given."""
    found = service.transfer_backfills.retry(
        caller.team_id, backfill_id, body.dates, user_id=caller.user_id, repeated=repeated
    )
    return wrap(show_backfill(service, found))


@router.get("/backfills/{backfill_id}/rejects", tags=["backfills"], **needs(Scope.TRANSFERS_READ))
def list_rejects(
    team_id: Id,
    backfill_id: Id,
    caller: CallerParam,
    service: ServiceParam,
    limit: Limit = None,
    cursor: Cursor = None,
) -> Envelope[TransferRejectsAnswer]:
    """Rows that could not be delivered: their date, their keys, and why."""
    page = service.transfer_backfills.rejects(
        caller.team_id, backfill_id, limit=limit, cursor=cursor
    )
    shown = [_show_reject(run, reject) for run, reject in page.items]
    return wrap(TransferRejectsAnswer(rejects=shown, next_cursor=page.next_cursor))


def show_backfill(service: Service, backfill: CountedBackfill) -> TransferBackfillAnswer:
    counters = backfill.counters
    failures = service.transfer_backfills.failures(backfill)
    progress = service.progress_of(backfill)
    paused = backfill.status is Status.PAUSED
    return TransferBackfillAnswer(
        transfer_backfill_id=backfill.id,
        transfer_id=int(backfill.pipeline_id),
        range_start_date=str(backfill.range_start),
        range_end_date=str(backfill.range_end),
        created_time=stamp(backfill.created_at),
        created_user_id=backfill.created_user_id or 1,
        removed_time=stamp_or_none(backfill.cancelled_at),
        removed_user_id=backfill.cancelled_user_id,
        start_time=stamp_or_none(backfill.started_at),
        end_time=stamp_or_none(_end(backfill)),
        status=_WORDS[backfill.status],
        transfer_runs_total=backfill.slices_planned,
        transfer_runs_created=counters.slices_total,
        transfer_runs_completed=counters.slices_completed,
        # without runs, it failed for every date
        transfer_runs_failed=counters.slices_failed if backfill.planned else len(failures),
        error_report=[
            RunErrorAnswer(
                transfer_run_date=failure.date.isoformat(), error=shorten(failure.error, 1000)
            )
            for failure in failures
        ],
        progress=round(progress.fraction, 4),
        rows_total=counters.rows_delivered,
        rows_rejected=counters.rows_rejected,
        rows_per_second=progress.rows_per_second,
        eta_seconds=progress.eta_seconds,
        paused_time=stamp_or_none(backfill.paused_at) if paused else None,
        reason=backfill.reason,
    )


def _show_reject(run: Slice, reject: Reject) -> TransferRejectAnswer:
    return TransferRejectAnswer(
        transfer_run_id=run.id,
        transfer_run_date=date_of(run),
        key=list(reject.key),
        reason=reject.reason,
        detail=reject.detail,
    )


def show_preview(preview: Preview) -> TransferDryRunAnswer:
    return TransferDryRunAnswer(
        dry_run=True,
        transfer_runs_total=preview.runs_total,
        dates=[
            PlannedDateAnswer(
                date=decision.date.isoformat(),
                action="run" if decision.runs else "skip",
                reason=decision.reason,
                replaces=decision.replaces,
            )
            for decision in preview.decisions
        ],
        blocked_by=preview.blocked_by,
    )


# the vendor's client raises on any other word, so a paused one is SCHEDULED with a paused_time
_WORDS: dict[Status, StatusWord] = {
    Status.CREATED: "CREATED",
    Status.SCHEDULED: "SCHEDULED",
    Status.PAUSED: "SCHEDULED",
    Status.RUNNING: "RUNNING",
    Status.COMPLETED: "COMPLETED",
    Status.FAILED: "FAILED",
    Status.CANCELLED: "CANCELLED",
}


def _end(backfill: Backfill) -> datetime | None:
    return backfill.ended_at or backfill.cancelled_at
