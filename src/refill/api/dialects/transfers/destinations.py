"""Destinations over HTTP."""

from typing import Annotated

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field

from refill.api.body import Body, body_of
from refill.api.connector_schemas import Form, described_by
from refill.api.dialects.transfers.forms import Envelope, Id, wrap
from refill.api.dialects.transfers.router import IN_USE, needs, router
from refill.api.dialects.transfers.setup_forms import (
    DestinationSettingAnswer,
    DestinationTypeAnswer,
    Scalar,
    describe_type,
    show_settings,
)
from refill.api.gate import MAX_ID, CallerParam, ServiceParam
from refill.api.route import RepeatedParam
from refill.domain.access import Scope
from refill.domain.pipeline import Destination
from refill.service import Service
from refill.service.destinations import DestinationDraft


class CreateTransferDestination(Body):
    """The connector's own fields below `fields`."""

    model_config = ConfigDict(
        json_schema_extra=described_by("destination", Form.GIVEN, "Create{}TransferDestination")
    )

    type: str = Field(min_length=1, max_length=100, description="which connector")
    display_name: str = Field(
        min_length=1, max_length=255, description="what it is called; unique in the team"
    )
    auth_method: str | None = Field(None, max_length=100, description="kept, and given back")
    fields: dict[str, Scalar] = Field(description="the connector's own fields")

    def to_draft(self, new_secret: str | None = None) -> DestinationDraft:
        return DestinationDraft(
            type=self.type,
            name=self.display_name,
            auth_method=self.auth_method,
            fields=self.fields,
            new_secret=new_secret,
        )


class UpdateTransferDestination(CreateTransferDestination):
    """Secrets that are left out of `fields` stay as they are."""

    model_config = ConfigDict(
        json_schema_extra=described_by("destination", Form.REPLACED, "Update{}TransferDestination")
    )

    new_password: str | None = Field(
        None, max_length=10_000, description="replaces the secret among the fields"
    )


class TestTransferDestination(UpdateTransferDestination):
    """With `destination_id`, secrets that are left out of `fields` are the stored ones."""

    model_config = ConfigDict(
        json_schema_extra=described_by("destination", Form.REPLACED, "Test{}TransferDestination")
    )

    destination_id: int | None = Field(
        None, ge=1, le=MAX_ID, description="the destination whose secrets stand for those left out"
    )


class TransferDestinationItem(BaseModel):
    id: int = Field(description="its id")
    display_name: str = Field(description="what it is called")
    type: str = Field(description="which connector")


class TransferDestinationAnswer(BaseModel):
    id: int = Field(description="its id")
    display_name: str = Field(description="what it is called")
    destination_type: DestinationTypeAnswer = Field(description="which connector")
    edit_settings: list[DestinationSettingAnswer] = Field(
        description="its fields as a form that is filled in"
    )
    # ours
    auth_method: str | None = Field(description="as it was given")


class UsingTransfer(BaseModel):
    transfer_id: int = Field(description="its id")
    transfer_name: str = Field(description="what it is called")


class DestinationUsageAnswer(BaseModel):
    is_used: bool = Field(description="whether a transfer writes into it")
    transfers: list[UsingTransfer] = Field(description="those that do")


class DestinationTestAnswer(BaseModel):
    success: bool = Field(description="whether it can be written to")
    error: str | None = Field(description="why not, in a sentence")


@router.get("/destinations", tags=["destinations"], **needs(Scope.DESTINATIONS_READ))
def list_destinations(
    team_id: Id, caller: CallerParam, service: ServiceParam
) -> Envelope[list[TransferDestinationItem]]:
    return wrap(
        [
            TransferDestinationItem(id=found.id, display_name=found.name, type=found.type)
            for found in service.destinations.list_all(caller.team_id)
        ]
    )


@router.post(
    "/destinations", status_code=201, tags=["destinations"], **needs(Scope.DESTINATIONS_WRITE)
)
def create_destination(
    team_id: Id,
    body: Annotated[CreateTransferDestination, body_of(CreateTransferDestination)],
    repeated: RepeatedParam,
    caller: CallerParam,
    service: ServiceParam,
) -> Envelope[TransferDestinationAnswer]:
    made = service.destinations.create(caller.team_id, body.to_draft(), repeated=repeated)
    return wrap(show_destination(service, made))


@router.post(
    "/destinations/test-connection", tags=["destinations"], **needs(Scope.DESTINATIONS_WRITE)
)
def test_connection(
    team_id: Id,
    body: Annotated[TestTransferDestination, body_of(TestTransferDestination)],
    caller: CallerParam,
    service: ServiceParam,
) -> Envelope[DestinationTestAnswer]:
    """Whether it can be written to. With `destination_id`, secrets left out are the stored ones."""
    draft = body.to_draft(body.new_password)
    error = service.destinations.test(caller.team_id, draft, body.destination_id)
    return wrap(DestinationTestAnswer(success=error is None, error=error))


@router.get(
    "/destinations/{destination_id}", tags=["destinations"], **needs(Scope.DESTINATIONS_READ)
)
def get_destination(
    team_id: Id, destination_id: Id, caller: CallerParam, service: ServiceParam
) -> Envelope[TransferDestinationAnswer]:
    found = service.destinations.get(caller.team_id, destination_id)
    return wrap(show_destination(service, found))


@router.put(
    "/destinations/{destination_id}", tags=["destinations"], **needs(Scope.DESTINATIONS_WRITE)
)
def update_destination(
    team_id: Id,
    destination_id: Id,
    body: Annotated[UpdateTransferDestination, body_of(UpdateTransferDestination)],
    caller: CallerParam,
    service: ServiceParam,
) -> Envelope[TransferDestinationAnswer]:
    """Secrets that are left out stay as they are."""
    draft = body.to_draft(body.new_password)
    changed = service.destinations.update(caller.team_id, destination_id, draft)
    return wrap(show_destination(service, changed))


@router.delete(
    "/destinations/{destination_id}",
    status_code=204,
    response_class=Response,
    tags=["destinations"],
    **needs(Scope.DESTINATIONS_WRITE, also=IN_USE),
)
def delete_destination(
    team_id: Id, destination_id: Id, caller: CallerParam, service: ServiceParam
) -> None:
    service.destinations.delete(caller.team_id, destination_id)


@router.get(
    "/destinations/{destination_id}/usage", tags=["destinations"], **needs(Scope.DESTINATIONS_READ)
)
def get_destination_usage(
    team_id: Id, destination_id: Id, caller: CallerParam, service: ServiceParam
) -> Envelope[DestinationUsageAnswer]:
    """The transfers that write into it."""
    users = service.destinations.usage(caller.team_id, destination_id)
    return wrap(
        DestinationUsageAnswer(
            is_used=bool(users),
            transfers=[
                UsingTransfer(transfer_id=transfer.id, transfer_name=transfer.name)
                for transfer in users
            ],
        )
    )


def show_destination(service: Service, destination: Destination) -> TransferDestinationAnswer:
    connector = service.destinations.connector(destination.type)
    return TransferDestinationAnswer(
        id=destination.id,
        display_name=destination.name,
        destination_type=describe_type(connector),
        edit_settings=show_settings(connector, service.destinations.shown_options(destination)),
        auth_method=destination.auth_method,
    )
