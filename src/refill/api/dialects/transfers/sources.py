"""What a transfer can be made of: sources, destinations, and the settings between them."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from pydantic import BaseModel, Field

from refill.api.body import Body, body_of
from refill.api.dialects.transfers.forms import Envelope, Id, wrap
from refill.api.dialects.transfers.router import needs, router
from refill.api.dialects.transfers.setup_forms import (
    DestinationSettingAnswer,
    DestinationTypeAnswer,
    describe_type,
    show_settings,
)
from refill.api.gate import MAX_ID, CallerParam, ServiceParam
from refill.domain.access import Scope
from refill.domain.table import DATED
from refill.service.schedules import INTERVALS
from refill.service.transfer_settings import FIELDS
from refill.service.transfer_views import SourceView


class AvailableSourceAnswer(BaseModel):
    data_source_id: str
    service_name: str
    service_provider: str
    logo_url: str | None
    has_custom_fields: bool
    is_custom_connector: bool
    is_public_beta: bool
    is_released: bool
    is_internal: bool
    applicable_destinations: list[str]


class AvailableDestination(BaseModel):
    destination_id: int
    destination_name: str
    destination_type: str
    destination_label: str
    destination_icon_url: str
    is_internal: bool
    details: list[dict[str, Any]]


class AvailableDestinationType(DestinationTypeAnswer):
    settings: list[DestinationSettingAnswer]
    auth_methods: list[dict[str, Any]]


class AvailableSources(BaseModel):
    data_sources: list[AvailableSourceAnswer]
    destinations: list[AvailableDestination]
    destination_types: list[AvailableDestinationType]


class OptionField(BaseModel):
    field_id: str
    input_type: str
    is_required: bool
    help_text: str


class OptionSource(BaseModel):
    data_source_id: str
    service_name: str
    settings: list[OptionField]


class ScheduleOption(BaseModel):
    run_interval: str
    fields: list[str]


class TableOption(BaseModel):
    table: str
    columns: list[str]
    date_columns: list[str]


class SchemaOption(BaseModel):
    schema_id: int
    name: str
    tables: list[TableOption]


class AvailableOptions(BaseModel):
    data_source: OptionSource
    schedule_options: list[ScheduleOption]
    schemas: list[SchemaOption]
    logins: list[dict[str, Any]]
    accounts: list[dict[str, Any]]
    segments: list[dict[str, Any]]


class OptionsOf(BaseModel):
    source_id: str = Field(min_length=1, max_length=255)
    destination_id: int = Field(ge=1, le=MAX_ID)


class CreateDataSourceConnection(Body):
    data_source_id: str = Field(min_length=1, max_length=255)
    destination_type: str = Field(min_length=1, max_length=100)
    api_key: str | None = None


class DataSourceConnectionAnswer(BaseModel):
    connection_id: UUID
    login_url: str | None
    connect_url: str | None


@router.get("/transfers/available-sources", tags=["transfers"], **needs(Scope.TRANSFERS_READ))
def get_available_sources(
    team_id: Id, caller: CallerParam, service: ServiceParam
) -> AvailableSources:
    """Without an envelope, as the client reads it."""
    choices = service.transfer_views.choices(caller.team_id)
    titles = {connector.type: connector.title for connector in choices.types}
    return AvailableSources(
        data_sources=[
            _show_source(source, [connector.type for connector in choices.types])
            for source in choices.sources
        ],
        destinations=[
            AvailableDestination(
                destination_id=found.id,
                destination_name=found.name,
                destination_type=found.type,
                destination_label=titles.get(found.type, found.type),
                destination_icon_url="",
                is_internal=False,
                details=[],
            )
            for found in choices.destinations
        ],
        destination_types=[
            AvailableDestinationType(
                **describe_type(connector).model_dump(),
                settings=show_settings(connector),
                auth_methods=[],
            )
            for connector in choices.types
        ],
    )


@router.get("/transfers/available-options", tags=["transfers"], **needs(Scope.TRANSFERS_READ))
def get_transfer_options(
    team_id: Id,
    chosen: Annotated[OptionsOf, Query()],
    caller: CallerParam,
    service: ServiceParam,
) -> AvailableOptions:
    """Without an envelope. The tables are those of the stored catalogue."""
    found = service.transfer_views.choose(caller.team_id, chosen.source_id, chosen.destination_id)
    source, tables = found.source, found.tables
    schemas = sorted({table.schema_name for table in tables})
    return AvailableOptions(
        data_source=OptionSource(
            data_source_id=source.database.name,
            service_name=source.title,
            settings=[
                OptionField(
                    field_id=name,
                    input_type="number" if name == "max_rejects" else "text",
                    is_required=name in ("table", "date_column"),
                    help_text=text,
                )
                for name, text in FIELDS.items()
            ],
        ),
        schedule_options=[
            ScheduleOption(run_interval=interval, fields=_SCHEDULE_FIELDS[interval])
            for interval in INTERVALS
        ],
        schemas=[
            SchemaOption(
                schema_id=number,
                name=schema,
                tables=[
                    TableOption(
                        table=table.full_name,
                        columns=[column.name for column in table.columns],
                        date_columns=[
                            column.name for column in table.columns if column.family in DATED
                        ],
                    )
                    for table in tables
                    if table.schema_name == schema
                ],
            )
            for number, schema in enumerate(schemas, 1)
        ],
        logins=[],
        accounts=[],
        segments=[],
    )


@router.post(
    "/data-source-connections", status_code=201, tags=["transfers"], **needs(Scope.TRANSFERS_WRITE)
)
def create_data_source_connection(
    team_id: Id,
    body: Annotated[CreateDataSourceConnection, body_of(CreateDataSourceConnection)],
    caller: CallerParam,
    service: ServiceParam,
) -> Envelope[DataSourceConnectionAnswer]:
    """A database is connected already when it is added: this names that connection."""
    database = service.transfer_views.connect(
        caller.team_id, body.data_source_id, body.destination_type
    )
    return wrap(
        DataSourceConnectionAnswer(
            connection_id=UUID(database.id), login_url=None, connect_url=None
        )
    )


def _show_source(source: SourceView, types: list[str]) -> AvailableSourceAnswer:
    return AvailableSourceAnswer(
        data_source_id=source.database.name,
        service_name=source.title,
        service_provider=source.database.type,
        logo_url=None,
        has_custom_fields=False,
        is_custom_connector=False,
        is_public_beta=False,
        is_released=True,
        is_internal=False,
        applicable_destinations=types,
    )


_SCHEDULE_FIELDS = {
    "hourly": ["refresh_window"],
    "daily": ["run_hour", "refresh_window"],
    "weekly": ["run_weekday", "run_hour", "refresh_window"],
    "monthly": ["run_day", "run_hour", "refresh_window"],
}
