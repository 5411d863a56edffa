"""Runs over HTTP."""

from datetime import UTC, date, datetime, time
from typing import Annotated, Literal

from fastapi import Query
from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema

from refill.api.dialects.transfers.forms import (
    Count,
    DayText,
    Envelope,
    Id,
    TimeText,
    stamp,
    stamp_or_none,
    wrap,
)
from refill.api.dialects.transfers.router import needs, router
from refill.api.gate import CallerParam, ServiceParam
from refill.domain.access import Scope
from refill.domain.backfill import Origin
from refill.domain.slice import Dated, Slice, SliceState
from refill.service.runs import RunQuery

RunWord = Literal["SCHEDULED", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"]


def _read_moment(value: object) -> datetime:
    text = str(value)
    try:
        moment = datetime.fromisoformat(text)
        # a time without a zone is UTC, as every time of this API
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ValueError("a date-time of the form YYYY-MM-DDTHH:MM:SSZ is needed") from None


def _read_last_moment(value: object) -> datetime:
    text = str(value)
    # a bare date as the end means all of it
    if len(text) == 10:
        try:
            return datetime.combine(date.fromisoformat(text), time.max, UTC)
        except ValueError:
            pass
    return _read_moment(text)


_MOMENT = WithJsonSchema({"type": "string", "format": "date-time"})
Moment = Annotated[datetime, BeforeValidator(_read_moment), _MOMENT]
LastMoment = Annotated[datetime, BeforeValidator(_read_last_moment), _MOMENT]


class TransferRunAnswer(BaseModel):
    id: int = Field(description="its id")
    status: RunWord = Field(description="SCHEDULED until it is claimed")
    created_time: TimeText = Field(description="when it was queued")
    ended_time: TimeText | None = Field(description="when it ended")
    type: Literal["Recurring", "Backfill"] = Field(
        description="by the transfer's schedule, or of a backfill"
    )
    total_duration: float | None = Field(description="seconds that it took")
    total_rows: Count | None = Field(description="rows delivered; null until it is completed")
    data_date: DayText = Field(description="the date that it delivers")
    message: str = Field(description="why it failed; empty otherwise")


class RunQueryAnswer(BaseModel):
    status: RunWord = Field(description="as the run's")
    duration: float | None = Field(description="seconds that it took")
    rows: Count = Field(description="rows read")
    error_description: str | None = Field(description="why it failed, in a sentence")


class TransferRunDetailAnswer(TransferRunAnswer):
    started_time: TimeText | None = Field(description="when its last attempt began")
    queued_time: TimeText = Field(description="when it was queued")
    external_id: str = Field(description="the UUID of its backfill, and the date")
    query_amount: Count = Field(description="how often the source was asked")
    failed_query_amount: Count = Field(description="how many of those failed")
    query_details: list[RunQueryAnswer] = Field(description="each time the source was asked")


class RunFilters(BaseModel):
    start_date: Moment = Field(description="created at this time or later")
    end_date: LastMoment = Field(
        description="created at this time or earlier; a bare date is all of that day"
    )
    filter_issues_only: bool = Field(False, description="only those that failed")
    sort_field: Literal["created_time", "data_date", "ended_time"] = Field(
        "created_time", description="what they are sorted by"
    )
    sort_direction: Literal["ASC", "DESC"] = Field("DESC", description="which end comes first")
    limit: int = Field(100, ge=1, le=10_000, description="how many at most")
    offset: int = Field(0, ge=0, le=2**31 - 1, description="how many to leave out first")


@router.get("/transfers/{transfer_id}/runs", tags=["runs"], **needs(Scope.TRANSFERS_READ))
def list_transfer_runs(
    team_id: Id,
    transfer_id: Id,
    filters: Annotated[RunFilters, Query()],
    caller: CallerParam,
    service: ServiceParam,
) -> Envelope[list[TransferRunAnswer]]:
    """Runs that were created between the two times, recurring ones and those of backfills."""
    query = RunQuery(
        start=filters.start_date,
        end=filters.end_date,
        issues_only=filters.filter_issues_only,
        sort_field=filters.sort_field,
        descending=filters.sort_direction == "DESC",
        limit=filters.limit,
        offset=filters.offset,
    )
    found = service.runs.list_of(caller.team_id, transfer_id, query)
    return wrap([show_run(run, origin) for run, origin in found])


@router.get("/transfer_runs/{transfer_run_id}", tags=["runs"], **needs(Scope.TRANSFERS_READ))
def get_transfer_run(
    team_id: Id, transfer_run_id: Id, caller: CallerParam, service: ServiceParam
) -> Envelope[TransferRunDetailAnswer]:
    run, backfill = service.runs.get(caller.team_id, transfer_run_id)
    summary = show_run(run, backfill.origin)
    queries = []
    if run.attempt:
        queries.append(
            RunQueryAnswer(
                status=summary.status,
                duration=summary.total_duration,
                rows=run.rows_read,
                error_description=run.error,
            )
        )
    return wrap(
        TransferRunDetailAnswer(
            **summary.model_dump(),
            started_time=stamp_or_none(run.started_at),
            queued_time=stamp(run.queued_at),
            external_id=f"{backfill.uid}:{summary.data_date}",
            query_amount=len(queries),
            failed_query_amount=len(queries) if run.state is SliceState.FAILED else 0,
            query_details=queries,
        )
    )


def show_run(run: Slice, origin: Origin) -> TransferRunAnswer:
    ended = run.state.ended
    return TransferRunAnswer(
        id=run.id,
        status=_WORDS[run.state],
        created_time=stamp(run.queued_at),
        ended_time=stamp_or_none(run.ended_at) if ended else None,
        type="Recurring" if origin is Origin.SCHEDULE else "Backfill",
        total_duration=round(run.seconds, 3) if ended and run.attempt else None,
        total_rows=run.rows_delivered if run.state is SliceState.COMPLETED else None,
        data_date=date_of(run),
        message=run.error or "",
    )


def date_of(run: Slice) -> str:
    return run.extent.date.isoformat() if isinstance(run.extent, Dated) else ""


_WORDS: dict[SliceState, RunWord] = {
    SliceState.PENDING: "SCHEDULED",
    SliceState.RUNNING: "RUNNING",
    SliceState.COMPLETED: "COMPLETED",
    SliceState.FAILED: "FAILED",
    SliceState.CANCELLED: "CANCELLED",
}
