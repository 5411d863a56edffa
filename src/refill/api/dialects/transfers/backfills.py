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
    range_start: Day = Field(description="first date")
    range_end: Day = Field(description="last date, inclusive")
    order: Order = Field(Order.NEWEST_FIRST, description="which dates run first")
    max_concurrent_runs: int | None = Field(
        None, ge=1, le=10_000, description="how many of its runs may be under way at once"
    )
    exclude_dates: list[Day] = Field(
        default_factory=list, max_length=10_000, description="dates of the range that do not run"
    )
    only: Only = Field(
        Only.ALL,
        description="all dates, those without a completed run, or those whose last run failed",
    )
    reason: str | None = Field(None, max_length=1000, description="why; it stays on record")
    dry_run: bool = Field(False, description="says what would run, and creates nothing")

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
    dates: list[Day] | None = Field(
        None, min_length=1, max_length=10_000, description="failed dates; without it all of them"
    )


class RunErrorAnswer(BaseModel):
    transfer_run_date: DayText = Field(description="the date that failed")
    error: str = Field(max_length=1000, description="why, in a sentence")


class TransferBackfillAnswer(BaseModel):
    transfer_backfill_id: int = Field(description="its id")
    transfer_id: int = Field(description="the transfer that it runs")
    range_start_date: DayText = Field(description="first date")
    range_end_date: DayText = Field(description="last date, inclusive")
    created_time: TimeText = Field(description="when it was asked for")
    created_user_id: int = Field(description="who asked for it")
    removed_time: TimeText | None = Field(description="when it was cancelled")
    removed_user_id: int | None = Field(description="who cancelled it")
    start_time: TimeText | None = Field(description="when its first run began")
    end_time: TimeText | None = Field(description="when it ended")
    status: StatusWord = Field(description="a paused one is SCHEDULED, with a paused_time")
    transfer_runs_total: Count = Field(description="dates that it runs")
    transfer_runs_created: Count = Field(description="dates whose runs exist")
    transfer_runs_completed: Count = Field(description="dates that were delivered")
    transfer_runs_failed: Count = Field(description="dates that failed")
    error_report: list[RunErrorAnswer] = Field(description="one entry for each date that failed")
    # ours
    progress: float = Field(ge=0, le=1, description="share of its dates that have ended")
    rows_total: Count = Field(description="rows delivered")
    rows_rejected: Count = Field(description="rows that could not be delivered")
    rows_per_second: float | None = Field(description="rows read per second so far")
    eta_seconds: float | None = Field(description="how long it will still take, at this rate")
    paused_time: TimeText | None = Field(description="since when it is paused")
    reason: str | None = Field(description="why it was asked for")


class TransferRejectAnswer(BaseModel):
    transfer_run_id: int = Field(description="the run it was in")
    transfer_run_date: DayText = Field(description="the date it was in")
    key: list[str | None] = Field(description="its primary key, as text")
    reason: str = Field(description="why it could not be delivered, as a word")
    detail: str | None = Field(description="the same in a sentence")


class TransferRejectsAnswer(BaseModel):
    rejects: list[TransferRejectAnswer] = Field(description="in the order of their runs")
    next_cursor: str | None = Field(description="`cursor` of the next page; null on the last one")


class PlannedDateAnswer(BaseModel):
    date: DayText = Field(description="a date of the range")
    action: Literal["run", "skip"] = Field(description="whether it would run")
    reason: str = Field(description="why")
    replaces: Count | None = Field(description="rows of it that were delivered before; null: none")


class TransferDryRunAnswer(BaseModel):
    dry_run: Literal[True] = Field(description="nothing was created")
    transfer_runs_total: Count = Field(description="how many dates would run")
    dates: list[PlannedDateAnswer] = Field(description="every date of the range")
    blocked_by: int | None = Field(description="id of the backfill that is in the way")


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
