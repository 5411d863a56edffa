"""The slices of a backfill, and the rows it could not deliver."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from refill.api.dialects.sinks.forms import Count, Listed, microseconds
from refill.api.dialects.sinks.router import needs, router
from refill.api.gate import CallerParam, ServiceParam
from refill.api.paging import Cursor, Limit
from refill.domain.access import Scope
from refill.domain.slice import Extent, NativeExtent, Reject, Slice


class SinkSliceAnswer(BaseModel):
    index: Count = Field(description="its place in the backfill, from 0")
    state: Literal["pending", "running", "completed", "failed", "cancelled"] = Field(
        description="pending until it is claimed"
    )
    extent: dict[str, Any] = Field(description="which rows it holds")
    attempt: Count = Field(description="how often it was claimed")
    failures: Count = Field(description="how many of its attempts failed")
    rows_estimated: Count = Field(description="by the plan")
    rows_read: Count = Field(description="rows read")
    rows_delivered: Count = Field(description="rows delivered")
    rows_filtered: Count = Field(description="rows that the filter dropped")
    rows_rejected: Count = Field(description="rows that could not be delivered")
    bytes_written: Count = Field(description="size of what was written")
    seconds: float = Field(description="how long it took; 0 until it has ended")
    error: str | None = Field(description="why its last attempt failed, in a sentence")
    error_code: str | None = Field(description="why its last attempt failed, as a word")
    queued_at: str | None = Field(description="since when it waits, or waited")
    started_at: str | None = Field(description="when its last attempt began")
    ended_at: str | None = Field(description="when it ended")


class SinkRejectAnswer(BaseModel):
    slice: Count = Field(description="index of the slice it was in")
    key: list[str | None] = Field(description="its primary key, as text")
    reason: str = Field(description="why it could not be delivered, as a word")
    detail: str | None = Field(description="the same in a sentence")


@router.get(
    "/sinks/{sink}/backfills/{backfill}/slices", tags=["backfills"], **needs(Scope.SINKS_READ)
)
def list_sink_slices(
    sink: str,
    backfill: str,
    caller: CallerParam,
    service: ServiceParam,
    limit: Limit = None,
    cursor: Cursor = None,
) -> Listed[SinkSliceAnswer]:
    """In their order; none before the backfill is planned, nor after they were pruned."""
    page = service.sink_backfills.slices(caller.team_id, sink, backfill, limit=limit, cursor=cursor)
    return Listed(data=[_show(part) for part in page.items], next_cursor=page.next_cursor)


@router.get(
    "/sinks/{sink}/backfills/{backfill}/rejects", tags=["backfills"], **needs(Scope.SINKS_READ)
)
def list_sink_rejects(
    sink: str,
    backfill: str,
    caller: CallerParam,
    service: ServiceParam,
    limit: Limit = None,
    cursor: Cursor = None,
) -> Listed[SinkRejectAnswer]:
    """Rows that could not be delivered: their keys, and why."""
    page = service.sink_backfills.rejects(
        caller.team_id, sink, backfill, limit=limit, cursor=cursor
    )
    return Listed(
        data=[_show_reject(part, reject) for part, reject in page.items],
        next_cursor=page.next_cursor,
    )


def _show(part: Slice) -> SinkSliceAnswer:
    return SinkSliceAnswer(
        index=part.index,
        state=part.state.value,
        extent=_extent(part.extent),
        attempt=part.attempt,
        failures=part.failures,
        rows_estimated=part.rows_estimated,
        rows_read=part.rows_read,
        rows_delivered=part.rows_delivered,
        rows_filtered=part.rows_filtered,
        rows_rejected=part.rows_rejected,
        bytes_written=part.bytes_written,
        seconds=part.seconds,
        error=part.error,
        error_code=part.error_code,
        queued_at=microseconds(part.queued_at),
        started_at=microseconds(part.started_at),
        ended_at=microseconds(part.ended_at),
    )


def _extent(extent: Extent) -> dict[str, Any]:
    """What is native to the source is nobody else's business."""
    if isinstance(extent, NativeExtent):
        return {"kind": extent.label, "lower": extent.lower, "upper": extent.upper}
    return extent.model_dump(mode="json")


def _show_reject(part: Slice, reject: Reject) -> SinkRejectAnswer:
    return SinkRejectAnswer(
        slice=part.index, key=list(reject.key), reason=reject.reason, detail=reject.detail
    )
