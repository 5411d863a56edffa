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
    data_source_id: str = Field(description="name of the database")
    service_name: str = Field(description="what its system is called")
    service_provider: str = Field(description="which connector")
    logo_url: str | None = Field(description="always null")
    has_custom_fields: bool = Field(description="always false")
    is_custom_connector: bool = Field(description="always false")
    is_public_beta: bool = Field(description="always false")
    is_released: bool = Field(description="always true")
    is_internal: bool = Field(description="always false")
    applicable_destinations: list[str] = Field(
        description="types of destination that it can be brought to"
    )


class AvailableDestination(BaseModel):
    destination_id: int = Field(description="its id")
    destination_name: str = Field(description="what it is called")
    destination_type: str = Field(description="which connector")
    destination_label: str = Field(description="what its system is called")
    destination_icon_url: str = Field(description="always empty")
    is_internal: bool = Field(description="always false")
    details: list[dict[str, Any]] = Field(description="always empty")


class AvailableDestinationType(DestinationTypeAnswer):
    settings: list[DestinationSettingAnswer] = Field(description="its fields as an empty form")
    auth_methods: list[dict[str, Any]] = Field(
        description="always empty: secrets are among the fields"
    )


class AvailableSources(BaseModel):
    data_sources: list[AvailableSourceAnswer] = Field(description="the team's databases")
    destinations: list[AvailableDestination] = Field(description="the team's destinations")
    destination_types: list[AvailableDestinationType] = Field(
        description="what a destination can be made of"
    )


class OptionField(BaseModel):
    field_id: str = Field(description="its name in data_source_settings")
    input_type: str = Field(description="how it is filled in")
    is_required: bool = Field(description="whether it must be")
    help_text: str = Field(description="what it is for")


class OptionSource(BaseModel):
    data_source_id: str = Field(description="name of the database")
    service_name: str = Field(description="what its system is called")
    settings: list[OptionField] = Field(description="what data_source_settings may hold")


class ScheduleOption(BaseModel):
    run_interval: str = Field(description="how often it runs")
    fields: list[str] = Field(description="what else such a schedule has")


class TableOption(BaseModel):
    table: str = Field(description="schema.table")
    columns: list[str] = Field(description="all of them")
    date_columns: list[str] = Field(description="those that can be the date_column")


class SchemaOption(BaseModel):
    schema_id: int = Field(description="a number for the list")
    name: str = Field(description="name of the schema")
    tables: list[TableOption] = Field(description="those that are in it")


class AvailableOptions(BaseModel):
    data_source: OptionSource = Field(description="the database that was asked for")
    schedule_options: list[ScheduleOption] = Field(description="how often a transfer can run")
    schemas: list[SchemaOption] = Field(description="its tables, as they were last listed")
    logins: list[dict[str, Any]] = Field(description="always empty: a database has its own")
    accounts: list[dict[str, Any]] = Field(description="always empty")
    segments: list[dict[str, Any]] = Field(description="always empty")


class OptionsOf(BaseModel):
    source_id: str = Field(min_length=1, max_length=255, description="name of a database")
    destination_id: int = Field(ge=1, le=MAX_ID, description="id of a destination")


class CreateDataSourceConnection(Body):
    data_source_id: str = Field(min_length=1, max_length=255, description="name of a database")
    destination_type: str = Field(
        min_length=1, max_length=100, description="which connector would be written to"
    )
    api_key: str | None = Field(None, description="not read: a database has its own password")


class DataSourceConnectionAnswer(BaseModel):
    connection_id: UUID = Field(description="id of the database")
    login_url: str | None = Field(description="always null: nothing is left to do")
    connect_url: str | None = Field(description="always null: nothing is left to do")


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
