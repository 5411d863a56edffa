"""Sinks over HTTP."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from refill.api.body import body_of
from refill.api.dialects.sinks.forms import Listed, listed
from refill.api.dialects.sinks.router import needs, router
from refill.api.dialects.sinks.sink_forms import CreateSink, SinkAnswer, UpdateSink, show_sink
from refill.api.gate import CallerParam, ServiceParam
from refill.api.paging import Cursor, Limit
from refill.api.route import UidParam
from refill.domain.access import Scope


class DeletedSink(BaseModel):
    id: str = Field(description="UUID of what is gone")
    deleted: Literal[True] = Field(description="it is gone")


@router.post("/sinks", tags=["sinks"], **needs(Scope.SINKS_WRITE))
def create_sink(
    body: Annotated[CreateSink, body_of(CreateSink)],
    uid: UidParam,
    caller: CallerParam,
    service: ServiceParam,
) -> SinkAnswer:
    """With `initial_backfill`, every table it covers is delivered at once, or those it names."""
    view = service.sinks.create(
        team_id=caller.team_id,
        uid=uid,
        draft=body.to_draft(),
        initial_backfill=body.initial(),
        user_id=caller.user_id,
    )
    return show_sink(service, view)


@router.get("/sinks", tags=["sinks"], response_model_exclude_unset=True, **needs(Scope.SINKS_READ))
def list_sinks(
    caller: CallerParam, service: ServiceParam, limit: Limit = None, cursor: Cursor = None
) -> Listed[SinkAnswer]:
    page = service.sinks.list_views(caller.team_id, limit=limit, cursor=cursor)
    shown = [show_sink(service, view) for view in page.items]
    return listed(shown, limit=limit, cursor=cursor, next_cursor=page.next_cursor)


@router.get("/sinks/{sink}", tags=["sinks"], **needs(Scope.SINKS_READ))
def get_sink(sink: str, caller: CallerParam, service: ServiceParam) -> SinkAnswer:
    return show_sink(service, service.sinks.get_view(caller.team_id, sink))


@router.patch("/sinks/{sink}", tags=["sinks"], **needs(Scope.SINKS_WRITE))
@router.put("/sinks/{sink}", tags=["sinks"], **needs(Scope.SINKS_WRITE))
def update_sink(
    sink: str,
    body: Annotated[UpdateSink, body_of(UpdateSink)],
    caller: CallerParam,
    service: ServiceParam,
) -> SinkAnswer:
    """What is not given stays; backfills under way go on as they were frozen."""
    view = service.sinks.update(team_id=caller.team_id, id_or_name=sink, draft=body.to_draft())
    return show_sink(service, view)


@router.delete("/sinks/{sink}", tags=["sinks"], **needs(Scope.SINKS_WRITE))
def delete_sink(sink: str, caller: CallerParam, service: ServiceParam) -> DeletedSink:
    """Its active backfills are cancelled with it."""
    return DeletedSink(id=service.sinks.delete(caller.team_id, sink).id, deleted=True)
