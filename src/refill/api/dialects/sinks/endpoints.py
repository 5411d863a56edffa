"""HTTP endpoints over HTTP."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field

from refill.api.body import body_of
from refill.api.dialects.sinks.forms import Listed, Name, listed, seconds
from refill.api.dialects.sinks.read_back import ReadBack
from refill.api.dialects.sinks.router import needs, router
from refill.api.gate import CallerParam, ServiceParam
from refill.api.paging import Cursor, Limit
from refill.api.route import UidParam
from refill.domain.access import Scope
from refill.domain.pipeline import HttpEndpoint
from refill.service.options import MASK

_PATH = "/destinations/http_endpoints"


def _as_object(given: object) -> object:
    """Files of the original list them; null is none."""
    if given is None:
        return {}
    pairs = given if isinstance(given, list) else []
    if all(isinstance(pair, dict) and isinstance(pair.get("key"), str) for pair in pairs):
        return {pair["key"]: pair.get("value") for pair in pairs} if given == pairs else given
    return given


Object = Annotated[dict[str, str], Field(max_length=100)]
Headers = Annotated[Object, BeforeValidator(_as_object)]
NewHeaders = Annotated[Object | None, BeforeValidator(_as_object)]
Url = Annotated[str, Field(min_length=1, max_length=2000)]


class CreateHttpEndpoint(ReadBack):
    name: Name = Field(description="what it is called; unique in the team")
    url: Url = Field(description="begins with http:// or https://")
    headers: Headers = Field(
        default_factory=dict, description="sent with every request; also as [{key, value}] or null"
    )
    encrypted_headers: Headers = Field(
        default_factory=dict, description="the same, and their values never come back"
    )


class UpdateHttpEndpoint(ReadBack):
    name: Name | None = Field(None, description="what it is called; unique in the team")
    url: Url | None = Field(None, description="begins with http:// or https://")
    headers: NewHeaders = Field(None, description="sent with every request; replaces all of them")
    encrypted_headers: NewHeaders = Field(
        None, description="the same; a mask keeps the value that is there"
    )


class HttpEndpointAnswer(BaseModel):
    id: str = Field(description="UUID")
    name: str = Field(description="what it is called; unique in the team")
    url: str = Field(description="where requests go")
    headers: dict[str, str] = Field(description="sent with every request")
    encrypted_headers: dict[str, str] = Field(description="their values never come back")
    inserted_at: str = Field(description="when it was added")
    updated_at: str = Field(description="when it was last changed")


class DeletedHttpEndpoint(BaseModel):
    id: str = Field(description="UUID of what is gone")
    success: Literal[True] = Field(description="it is gone")
    deleted: Literal[True] = Field(description="it is gone")


@router.post(_PATH, tags=["http endpoints"], **needs(Scope.SINKS_WRITE))
def create_http_endpoint(
    body: Annotated[CreateHttpEndpoint, body_of(CreateHttpEndpoint)],
    uid: UidParam,
    caller: CallerParam,
    service: ServiceParam,
) -> HttpEndpointAnswer:
    made = service.endpoints.create(
        team_id=caller.team_id,
        uid=uid,
        name=body.name,
        url=body.url,
        headers=body.headers,
        encrypted_headers=body.encrypted_headers,
    )
    return show_endpoint(made)


@router.get(
    _PATH,
    tags=["http endpoints"],
    response_model_exclude_unset=True,
    **needs(Scope.SINKS_READ),
)
def list_http_endpoints(
    caller: CallerParam, service: ServiceParam, limit: Limit = None, cursor: Cursor = None
) -> Listed[HttpEndpointAnswer]:
    page = service.endpoints.list_all(caller.team_id, limit=limit, cursor=cursor)
    shown = [show_endpoint(endpoint) for endpoint in page.items]
    return listed(shown, limit=limit, cursor=cursor, next_cursor=page.next_cursor)


@router.get(_PATH + "/{endpoint}", tags=["http endpoints"], **needs(Scope.SINKS_READ))
def get_http_endpoint(
    endpoint: str, caller: CallerParam, service: ServiceParam
) -> HttpEndpointAnswer:
    return show_endpoint(service.endpoints.get(caller.team_id, endpoint))


@router.patch(_PATH + "/{endpoint}", tags=["http endpoints"], **needs(Scope.SINKS_WRITE))
@router.put(_PATH + "/{endpoint}", tags=["http endpoints"], **needs(Scope.SINKS_WRITE))
def update_http_endpoint(
    endpoint: str,
    body: Annotated[UpdateHttpEndpoint, body_of(UpdateHttpEndpoint)],
    caller: CallerParam,
    service: ServiceParam,
) -> HttpEndpointAnswer:
    """What is not given stays as it is."""
    updated = service.endpoints.update(
        team_id=caller.team_id,
        id_or_name=endpoint,
        name=body.name,
        url=body.url,
        headers=body.headers,
        encrypted_headers=body.encrypted_headers,
    )
    return show_endpoint(updated)


@router.delete(_PATH + "/{endpoint}", tags=["http endpoints"], **needs(Scope.SINKS_WRITE))
def delete_http_endpoint(
    endpoint: str, caller: CallerParam, service: ServiceParam
) -> DeletedHttpEndpoint:
    """Refused while a sink sends to it."""
    gone = service.endpoints.delete(caller.team_id, endpoint)
    return DeletedHttpEndpoint(id=gone.id, success=True, deleted=True)


def show_endpoint(endpoint: HttpEndpoint) -> HttpEndpointAnswer:
    return HttpEndpointAnswer(
        id=endpoint.id,
        name=endpoint.name,
        url=endpoint.url,
        headers=dict(endpoint.headers),
        encrypted_headers=dict.fromkeys(endpoint.encrypted_headers, MASK),
        inserted_at=seconds(endpoint.created_at),
        updated_at=seconds(endpoint.updated_at),
    )
