"""Bodies and answers of sinks, in the original's shape."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from refill.api.body import Body
from refill.api.connector_schemas import Form, described_by
from refill.api.dialects.sinks.backfills import SinkBackfillAnswer, show_backfill
from refill.api.dialects.sinks.forms import Name, Text, seconds
from refill.api.dialects.sinks.initial import InitialBackfill
from refill.api.dialects.sinks.read_back import SinkReadBack
from refill.api.dialects.sinks.sql_forms import (
    NONE,
    EnrichmentInput,
    FilterSqlInput,
    PathAnswer,
    RoutingInput,
    SqlAnswer,
    TransformInput,
    no_function,
    shown_path,
    shown_sql,
)
from refill.domain.pipeline import Condition, Operator, Selection, Sink, SinkTable
from refill.service import Service
from refill.service.sink_freezer import BackfillRequest
from refill.service.sinks import SinkDraft, SinkView

Names = Annotated[list[Text], Field(max_length=1000)]
StatusWord = Literal["active", "disabled", "paused"]


def _supported_policy(value: object) -> object:
    if value not in (*NONE, "pause_on_full"):
        raise ValueError("not supported yet; a sink that cannot keep up holds the reader back")
    return value


def _supported_grouping(value: object) -> object:
    if value not in NONE and value is not True:
        raise ValueError("not supported yet; leave it out, or give none")
    return value


class SinkSourceInput(Body):
    include_schemas: Names | None = Field(None, description="only these")
    exclude_schemas: Names | None = Field(None, description="all but these")
    include_tables: Names | None = Field(None, description="only these, as schema.table")
    exclude_tables: Names | None = Field(None, description="all but these, as schema.table")


class SinkTableInput(Body):
    name: Text = Field(description="schema.table")
    group_column_names: Names | None = Field(
        None,
        description="columns that make the message key of its rows, instead of the primary key",
    )


class ConditionInput(Body):
    column_name: Text = Field(description="a column of the table")
    operator: Operator = Field(description="how the two are compared")
    comparison_value: Any = Field(
        None, description="a list for in and not in; nothing for is null and is not null"
    )
    field_path: Text | None = Field(
        None, description="a value inside a json or jsonb column: names between dots"
    )


class SinkDestinationUpdate(Body):
    """The connector's own fields beside its type; where that stays, what is left out does too."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra=described_by("sink", Form.MERGED, "{}DestinationUpdate"),
    )

    type: str = Field(min_length=1, max_length=50, description="which connector")


class SinkDestinationInput(SinkDestinationUpdate):
    """The connector's own fields beside its type."""

    model_config = ConfigDict(
        json_schema_extra=described_by("sink", Form.GIVEN, "{}DestinationInput")
    )


class UpdateSink(SinkReadBack):
    name: Name | None = Field(None, description="what it is called; unique in the team")
    status: StatusWord | None = Field(
        None,
        description="while it is not active its backfills wait; disabled, it takes no new ones",
    )
    database: Text | None = Field(None, description="name or id of the database that it reads")
    source: SinkSourceInput | None = Field(None, description="which tables it covers")
    tables: Annotated[list[SinkTableInput], Field(max_length=1000)] | None = Field(
        None, description="settings by table; they do not restrict what it covers"
    )
    table: Text | None = Field(
        None, description="the original's older form of source.include_tables with one table"
    )
    schema_: Text | None = Field(
        None, alias="schema", description="the same of source.include_schemas with one schema"
    )
    initial_backfill: InitialBackfill = Field(
        None, description="read when a sink is made: true for every table that it covers, or some"
    )
    actions: list[Literal["insert", "update", "delete"]] | None = Field(
        None, description="for live changes; backfills do not read it"
    )
    destination: SinkDestinationUpdate | None = Field(None, description="where it delivers to")
    batch_size: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        None, description="messages per request of a webhook; 100 where nobody says otherwise"
    )
    filter: Annotated[
        Literal["none", ""]
        | Annotated[list[ConditionInput], Field(max_length=100)]
        | FilterSqlInput
        | None,
        BeforeValidator(no_function("filter")),
    ] = Field(None, description="conditions that a row must meet, all of them; or SQL")
    transform: Annotated[
        Literal["none", ""] | TransformInput | None, BeforeValidator(no_function("transform"))
    ] = Field(None, description="what becomes of a row")
    timestamp_format: Literal["iso8601", "unix_microsecond"] | None = Field(
        None, description="how messages write times"
    )
    numeric_format: Literal["string", "number"] | None = Field(
        None, description="how messages write numeric: a string with every digit, or a number"
    )
    max_retry_count: Annotated[int, Field(ge=0, lt=2**31)] | None = Field(
        None, description="how often a slice is tried again before it fails"
    )
    max_rejects: Annotated[int, Field(ge=0, lt=2**31)] | None = Field(
        None, description="how many rows of a backfill may fail to be delivered"
    )
    annotations: dict[str, Any] | None = Field(None, description="kept, and given in every message")
    routing: Annotated[
        Literal["none", ""] | RoutingInput | None, BeforeValidator(no_function("routing"))
    ] = Field(None, description="where each message goes, by SQL")
    enrichment: Annotated[
        Literal["none", ""] | EnrichmentInput | None, BeforeValidator(no_function("enrichment"))
    ] = Field(None, description="what the source adds to each message's metadata, by SQL")
    load_shedding_policy: Annotated[
        Literal["none", "", "pause_on_full"] | None, BeforeValidator(_supported_policy)
    ] = Field(None, description="a sink that cannot keep up holds the reader back")
    message_grouping: Annotated[
        Literal["none", "", True] | None, BeforeValidator(_supported_grouping)
    ] = Field(None, description="only what the original has by default")

    def to_draft(self) -> SinkDraft:
        return SinkDraft(
            name=self.name,
            status=self.status,
            database=self.database,
            selection=self._selection(),
            tables=self._tables(),
            actions=None if self.actions is None else tuple(self.actions),
            destination=None if self.destination is None else self.destination.model_dump(),
            batch_size=self.batch_size,
            filter=self._filter(),
            transform=self.transform.sql if isinstance(self.transform, TransformInput) else None,
            drops_transform="transform" in self.model_fields_set,
            forms=self._forms(),
            timestamp_format=self.timestamp_format,
            numeric_format=self.numeric_format,
            max_retry_count=self.max_retry_count,
            max_rejects=self.max_rejects,
            annotations=self.annotations,
        )

    def _selection(self) -> Selection | None:
        if self.source is not None:
            return Selection.model_validate(self.source.model_dump())
        if self.table is not None:
            return Selection(include_tables=(self.table,))
        return None if self.schema_ is None else Selection(include_schemas=(self.schema_,))

    def initial(self) -> bool | tuple[BackfillRequest, ...]:
        if isinstance(self.initial_backfill, list):
            return tuple(table.to_request() for table in self.initial_backfill)
        return bool(self.initial_backfill)

    def _tables(self) -> tuple[SinkTable, ...] | None:
        if self.tables is None:
            return None
        return tuple(SinkTable.model_validate(table.model_dump()) for table in self.tables)

    def _forms(self) -> dict[str, str | None]:
        """Of what is given; what is not stays as it is."""
        found: dict[str, str | None] = {}
        if "filter" in self.model_fields_set:
            given = self.filter
            found["filter_sql"] = given.sql if isinstance(given, FilterSqlInput) else None
        if "transform" in self.model_fields_set:
            made = self.transform
            found["message_path"] = made.path if isinstance(made, TransformInput) else None
        for name in ("routing", "enrichment"):
            if name in self.model_fields_set:
                found[name] = getattr(getattr(self, name), "sql", None)
        return found

    def _filter(self) -> tuple[Condition, ...] | None:
        if "filter" not in self.model_fields_set:
            return None
        conditions = self.filter if isinstance(self.filter, list) else []
        return tuple(
            Condition(
                column_name=condition.column_name,
                operator=condition.operator,
                comparison_value=condition.comparison_value,
                field_path=condition.field_path,
            )
            for condition in conditions
        )


class CreateSink(UpdateSink):
    name: Name = Field(description="what it is called; unique in the team")
    database: Text = Field(description="name or id of the database that it reads")
    destination: SinkDestinationInput = Field(description="where it delivers to")


class SinkSourceAnswer(BaseModel):
    include_schemas: list[str] | None = Field(description="only these")
    exclude_schemas: list[str] | None = Field(description="all but these")
    include_tables: list[str] | None = Field(description="only these, as schema.table")
    exclude_tables: list[str] | None = Field(description="all but these, as schema.table")


class SinkTableAnswer(BaseModel):
    name: str = Field(description="schema.table")
    group_column_names: list[str] | None = Field(description="columns that group its messages")


class ConditionAnswer(BaseModel):
    column_name: str = Field(description="a column of the table")
    operator: str = Field(description="how the two are compared")
    comparison_value: Any = Field(description="what it is compared with")
    field_path: str | None = Field(None, description="where inside a JSON column")


class SinkDestinationAnswer(BaseModel):
    """The type and the connector's fields, its secrets masked."""

    model_config = ConfigDict(
        extra="allow", json_schema_extra=described_by("sink", Form.SHOWN, "{}Destination")
    )

    type: str = Field(description="which connector")


class SinkHealthCheck(BaseModel):
    name: str = Field(description="what was looked at")
    status: Literal["healthy", "warning", "error"] = Field(description="how it is")
    error: str | None = Field(description="what is wrong, in a sentence")


class SinkHealth(BaseModel):
    name: str = Field(description="what was looked at")
    status: Literal["healthy", "warning", "error"] = Field(description="the worst of its checks")
    checks: list[SinkHealthCheck] = Field(description="what it is made up of")


class SinkAnswer(BaseModel):
    id: str = Field(description="UUID")
    name: str = Field(description="what it is called; unique in the team")
    status: str = Field(description="active, disabled or paused")
    database: str = Field(description="name of the database that it reads")
    source: SinkSourceAnswer = Field(description="which tables it covers")
    tables: list[SinkTableAnswer] = Field(description="settings by table")
    actions: list[str] = Field(description="for live changes; backfills do not read it")
    destination: SinkDestinationAnswer = Field(description="where it delivers to")
    filter: Literal["none"] | list[ConditionAnswer] | SqlAnswer = Field(
        description="conditions that a row must meet, all of them; or SQL"
    )
    transform: Literal["none"] | SqlAnswer | PathAnswer = Field(description="what becomes of a row")
    routing: Literal["none"] | SqlAnswer = Field(description="where each message goes")
    enrichment: Literal["none"] | SqlAnswer = Field(
        description="what the source adds to each message's metadata"
    )
    message_grouping: bool = Field(description="always true")
    load_shedding_policy: str = Field(
        description="a sink that cannot keep up holds the reader back"
    )
    batch_size: int = Field(description="messages per request")
    max_retry_count: int | None = Field(
        description="how often a slice is tried again before it fails"
    )
    max_rejects: int = Field(description="how many rows of a backfill may fail to be delivered")
    timestamp_format: str = Field(description="how messages write times")
    numeric_format: str = Field(description="how messages write numeric: string or number")
    annotations: dict[str, Any] = Field(description="given in every message")
    active_backfills: list[SinkBackfillAnswer] = Field(description="those under way or paused")
    health: SinkHealth = Field(description="what its last backfill says of it")
    inserted_at: str = Field(description="when it was added")
    updated_at: str = Field(description="when it was last changed")


def show_sink(service: Service, view: SinkView) -> SinkAnswer:
    sink = view.sink
    return SinkAnswer(
        id=sink.id,
        name=sink.name,
        status=sink.status,
        database=view.database_name,
        source=SinkSourceAnswer.model_validate(sink.selection.model_dump(mode="json")),
        tables=[
            SinkTableAnswer.model_validate(table.model_dump(mode="json")) for table in sink.tables
        ],
        actions=list(sink.actions),
        destination=SinkDestinationAnswer(**view.destination),
        filter=_shown_filter(sink),
        transform=shown_path(sink.message_path) or shown_sql(sink.transform),
        routing=shown_sql(sink.routing),
        enrichment=shown_sql(sink.enrichment),
        message_grouping=True,
        load_shedding_policy="pause_on_full",
        batch_size=view.batch_size,
        max_retry_count=sink.max_retry_count,
        max_rejects=sink.max_rejects,
        timestamp_format=sink.timestamp_format,
        numeric_format=sink.numeric_format,
        annotations=dict(sink.annotations),
        active_backfills=[show_backfill(service, found) for found in view.active_backfills],
        health=_health(view),
        inserted_at=seconds(sink.created_at),
        updated_at=seconds(sink.updated_at),
    )


def _shown_filter(sink: Sink) -> Literal["none"] | list[ConditionAnswer] | SqlAnswer:
    if sink.filter_sql is not None:
        return SqlAnswer(sql=sink.filter_sql)
    return [
        ConditionAnswer.model_validate(condition.model_dump(mode="json"))
        for condition in sink.filter
    ] or "none"


def _health(view: SinkView) -> SinkHealth:
    """What the last backfill says of the sink: nothing is connected to for it."""
    failed, status = view.failed, view.sink.status
    waits = status != "active"
    checks = [
        SinkHealthCheck(name="Sink configuration", status="healthy", error=None),
        SinkHealthCheck(
            name="Last backfill",
            status="error" if failed else "healthy",
            error=failed.error if failed else None,
        ),
        SinkHealthCheck(
            name="Sink status",
            status="warning" if waits else "healthy",
            error=f"the sink is {status}: its backfills wait" if waits else None,
        ),
    ]
    overall: Literal["healthy", "warning", "error"] = "warning" if waits else "healthy"
    return SinkHealth(name="Consumer health", status="error" if failed else overall, checks=checks)
