"""Backfills over HTTP."""

from typing import Annotated, Literal

from fastapi import Query
from pydantic import BaseModel, BeforeValidator, Field

from refill.api.body import Body, body_of
from refill.api.dialects.sinks.forms import (
    Count,
    Listed,
    listed,
    microseconds,
    seconds,
)
from refill.api.dialects.sinks.router import needs, router
from refill.api.gate import CallerParam, ServiceParam
from refill.api.paging import Cursor, Limit
from refill.api.route import UidParam
from refill.domain.access import Scope
from refill.domain.backfill import CountedBackfill, Status
from refill.domain.slice import KeyRange, NativeExtent, Whole
from refill.planning.plan import PlannedExtent
from refill.service import Service
from refill.service.sink_backfills import Preview, State
from refill.service.sink_freezer import BackfillRequest

Position = Annotated[
    str | Annotated[int, Field(ge=-(2**63), lt=2**63)] | float,
    Field(description="inclusive; as text in the database's own form, or a number"),
]
StateWord = Literal["active", "paused", "completed", "failed", "cancelled"]
SLICES_SHOWN = 100


class CreateSinkBackfill(Body):
    table: str | None = Field(
        None,
        min_length=1,
        max_length=255,
        description="schema.table, or table in public; left out, the one that the sink names",
    )
    sort_column: str | None = Field(
        None,
        min_length=1,
        max_length=63,
        description="what the slices go by; without it the primary key, else a unique one",
    )
    start_position: Position | None = Field(None, description="first value of the sort column")
    end_position: Position | None = Field(None, description="last value of the sort column")
    max_rows_per_second: int | None = Field(
        None, ge=1, lt=2**31, description="reads no faster than this"
    )
    reason: str | None = Field(None, max_length=1000, description="why; it stays on record")
    dry_run: bool = Field(False, description="says what would be done, and creates nothing")

    def to_request(self) -> BackfillRequest:
        return BackfillRequest(
            table=self.table,
            sort_column=self.sort_column,
            start_position=_text(self.start_position),
            end_position=_text(self.end_position),
            max_rows_per_second=self.max_rows_per_second,
            reason=self.reason,
        )


def _settable(value: object) -> object:
    if not isinstance(value, str) or value not in set(State):
        raise ValueError(f"{value!r} cannot be set; set active, paused or cancelled")
    return State(value)


class UpdateSinkBackfill(Body):
    state: Annotated[State, BeforeValidator(_settable)] = Field(
        State.ACTIVE, description="active, paused or cancelled"
    )


class SliceCounts(BaseModel):
    total: Count = Field(description="how many there are; 0 until it is planned")
    completed: Count = Field(description="delivered")
    failed: Count = Field(description="failed for good")
    running: Count = Field(description="under way now")


class SinkBackfillAnswer(BaseModel):
    id: str = Field(description="UUID")
    state: StateWord = Field(description="active until it ends, or is paused")
    table: str = Field(description="schema.table")
    sink_consumer: str = Field(description="name of the sink")
    sort_column: str | None = Field(
        description="what the slices go by, several joined by commas; null: the table's pages"
    )
    rows_initial_count: Count = Field(
        description="0 until it is planned, then an estimate; once completed, what was read"
    )
    rows_processed_count: Count = Field(description="rows read")
    rows_ingested_count: Count = Field(description="rows delivered")
    inserted_at: str = Field(description="when it was asked for")
    updated_at: str = Field(description="when it last changed")
    canceled_at: str | None = Field(description="when it was cancelled")
    completed_at: str | None = Field(description="when all of it was delivered")
    # ours
    paused_at: str | None = Field(description="since when it is paused")
    failed_at: str | None = Field(description="when it failed")
    error: str | None = Field(description="why it failed, in a sentence")
    error_code: str | None = Field(description="why it failed, as a word")
    reason: str | None = Field(description="why it was asked for")
    progress: float = Field(ge=0, le=1, description="share of it that is done")
    rows_rejected_count: Count = Field(description="rows that could not be delivered")
    rows_per_second: float | None = Field(description="rows read per second so far")
    eta_seconds: float | None = Field(description="how long it will still take, at this rate")
    slices: SliceCounts = Field(description="its parts, counted")


class PlannedSliceAnswer(BaseModel):
    kind: str = Field(description="whole, keys, nulls, or what the source calls its parts: pages")
    lower: str | list[str] | None = Field(
        description="above this; a list where several columns sort; null: from the beginning"
    )
    upper: str | list[str] | None = Field(description="up to and with this; null: to the end")


class SinkDryRunAnswer(BaseModel):
    dry_run: Literal[True] = Field(description="nothing was created")
    table: str = Field(description="schema.table")
    sort_column: str | None = Field(description="what the slices would go by")
    estimated_rows: Count = Field(description="by the database's statistics")
    slices_total: Count = Field(description="how many slices there would be")
    slices: list[PlannedSliceAnswer] = Field(description="the first hundred of them")
    blocked_by: str | None = Field(description="id of the backfill that is in the way")


@router.get(
    "/sinks/{sink}/backfills",
    tags=["backfills"],
    response_model_exclude_unset=True,
    **needs(Scope.SINKS_READ),
)
def list_sink_backfills(
    sink: str,
    caller: CallerParam,
    service: ServiceParam,
    limit: Limit = None,
    cursor: Cursor = None,
) -> Listed[SinkBackfillAnswer]:
    """Newest first."""
    page = service.sink_backfills.list_of_sink(caller.team_id, sink, limit=limit, cursor=cursor)
    shown = [show_backfill(service, backfill) for backfill in page.items]
    return listed(shown, limit=limit, cursor=cursor, next_cursor=page.next_cursor)


@router.post("/sinks/{sink}/backfills", tags=["backfills"], **needs(Scope.SINKS_WRITE))
def create_sink_backfill(
    sink: str,
    body: Annotated[CreateSinkBackfill, body_of(CreateSinkBackfill)],
    uid: UidParam,
    caller: CallerParam,
    service: ServiceParam,
) -> SinkBackfillAnswer | SinkDryRunAnswer:
    """Delivers a table again; with `dry_run` it only says how."""
    backfills, request = service.sink_backfills, body.to_request()
    if body.dry_run:
        return show_preview(backfills.preview(caller.team_id, sink, request))
    made = backfills.submit(caller.team_id, sink, request, uid=uid, user_id=caller.user_id)
    return show_backfill(service, made)


@router.get("/sinks/{sink}/backfills/{backfill}", tags=["backfills"], **needs(Scope.SINKS_READ))
def get_sink_backfill(
    sink: str, backfill: str, caller: CallerParam, service: ServiceParam
) -> SinkBackfillAnswer:
    found = service.sink_backfills.get_of_sink(caller.team_id, sink, backfill)
    return show_backfill(service, found)


@router.patch("/sinks/{sink}/backfills/{backfill}", tags=["backfills"], **needs(Scope.SINKS_WRITE))
@router.put("/sinks/{sink}/backfills/{backfill}", tags=["backfills"], **needs(Scope.SINKS_WRITE))
def update_sink_backfill(
    sink: str,
    backfill: str,
    body: Annotated[UpdateSinkBackfill, body_of(UpdateSinkBackfill)],
    caller: CallerParam,
    service: ServiceParam,
) -> SinkBackfillAnswer:
    """Pauses, resumes, cancels, or retries what failed; `{}` changes nothing."""
    place = (caller.team_id, sink, backfill)
    if "state" in body.model_fields_set:
        found = service.sink_backfills.move(*place, body.state, user_id=caller.user_id)
    else:
        found = service.sink_backfills.get_of_sink(*place)
    return show_backfill(service, found)


@router.get("/backfills", tags=["backfills"], **needs(Scope.SINKS_READ))
def list_team_backfills(
    caller: CallerParam,
    service: ServiceParam,
    state: Annotated[list[StateWord] | None, Query(description="in one of these")] = None,
    limit: Limit = None,
    cursor: Cursor = None,
) -> Listed[SinkBackfillAnswer]:
    """Of all the team's sinks, newest first."""
    page = service.sink_backfills.list_of_team(
        caller.team_id, states=[State(word) for word in state or ()], limit=limit, cursor=cursor
    )
    return Listed(
        data=[show_backfill(service, backfill) for backfill in page.items],
        next_cursor=page.next_cursor,
    )


@router.get("/backfills/{backfill}", tags=["backfills"], **needs(Scope.SINKS_READ))
def get_team_backfill(
    backfill: str, caller: CallerParam, service: ServiceParam
) -> SinkBackfillAnswer:
    """Of whichever of the team's sinks, by its id alone."""
    found = service.sink_backfills.get_of_team(caller.team_id, backfill)
    return show_backfill(service, found)


def show_backfill(service: Service, backfill: CountedBackfill) -> SinkBackfillAnswer:
    counters = backfill.counters
    progress = service.progress_of(backfill)
    initial = max(backfill.rows_estimated, counters.rows_read) if backfill.planned else 0
    if backfill.status is Status.COMPLETED:
        initial = counters.rows_read
    return SinkBackfillAnswer(
        id=backfill.uid,
        state=State.of(backfill.status).value,
        table=backfill.spec.read.name,
        sink_consumer=backfill.pipeline_name,
        sort_column=",".join(backfill.sort_columns) or None,
        rows_initial_count=initial,
        rows_processed_count=counters.rows_read,
        rows_ingested_count=counters.rows_delivered,
        inserted_at=seconds(backfill.created_at),
        updated_at=seconds(backfill.updated_at),
        canceled_at=microseconds(backfill.cancelled_at),
        completed_at=microseconds(backfill.completed_at),
        paused_at=microseconds(backfill.paused_at),
        failed_at=microseconds(backfill.failed_at),
        error=backfill.error,
        error_code=backfill.error_code,
        reason=backfill.reason,
        progress=progress.fraction,
        rows_rejected_count=counters.rows_rejected,
        rows_per_second=progress.rows_per_second,
        eta_seconds=progress.eta_seconds,
        slices=SliceCounts(
            total=counters.slices_total,
            completed=counters.slices_completed,
            failed=counters.slices_failed,
            running=counters.slices_running,
        ),
    )


def show_preview(preview: Preview) -> SinkDryRunAnswer:
    return SinkDryRunAnswer(
        dry_run=True,
        table=preview.table,
        sort_column=",".join(preview.sort_columns) or None,
        estimated_rows=max(0, preview.rows_estimated),
        slices_total=len(preview.planned),
        slices=[_show_planned(planned) for planned in preview.planned[:SLICES_SHOWN]],
        blocked_by=preview.blocked_by.uid if preview.blocked_by else None,
    )


def _show_planned(planned: PlannedExtent) -> PlannedSliceAnswer:
    extent = planned.extent
    if isinstance(extent, KeyRange):
        return PlannedSliceAnswer(kind="keys", lower=_key(extent.lower), upper=_key(extent.upper))
    if isinstance(extent, NativeExtent):
        return PlannedSliceAnswer(kind=extent.label, lower=extent.lower, upper=extent.upper)
    if isinstance(extent, Whole):
        return PlannedSliceAnswer(kind="whole", lower=None, upper=None)
    return PlannedSliceAnswer(kind="nulls", lower=None, upper=None)


def _key(parts: tuple[str, ...] | None) -> str | list[str] | None:
    """One column as text, several as a list."""
    if parts is None:
        return None
    return parts[0] if len(parts) == 1 else list(parts)


def _text(position: str | int | float | None) -> str | None:
    return None if position is None else str(position)
