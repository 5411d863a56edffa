"""Bodies and answers of sinks, in the original's shape."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from refill.api.body import Body
from refill.api.connector_schemas import Form, described_by
from refill.api.dialects.sinks.forms import Name, Text, seconds
from refill.domain.pipeline import Condition, Operator, Selection, SinkTable
from refill.service.sinks import SinkDraft, SinkView

Names = Annotated[list[Text], Field(max_length=1000)]
StatusWord = Literal["active", "disabled", "paused"]
_NONE = ("none", "", None)


def _only_none(value: object) -> object:
    if value not in _NONE:
        raise ValueError("not supported yet; leave it out, or give none")
    return value


def _supported_policy(value: object) -> object:
    if value not in (*_NONE, "pause_on_full"):
        raise ValueError("not supported yet; a sink that cannot keep up holds the reader back")
    return value


def _supported_grouping(value: object) -> object:
    if value not in _NONE and value is not True:
        raise ValueError("not supported yet; leave it out, or give none")
    return value


def _no_function(value: object) -> object:
    if isinstance(value, str) and value not in _NONE:
        raise ValueError("functions are not supported yet; see the reference for what is")
    return value


Unsupported = Annotated[Literal["none", ""] | None, BeforeValidator(_only_none)]


class SinkSourceInput(Body):
    include_schemas: Names | None = None
    exclude_schemas: Names | None = None
    include_tables: Names | None = None
    exclude_tables: Names | None = None


class SinkTableInput(Body):
    name: Text
    group_column_names: Names | None = None


class ConditionInput(Body):
    column_name: Text
    operator: Operator
    comparison_value: Any = None


class TransformInput(Body):
    sql: str = Field(min_length=1, max_length=20_000)


class SinkDestinationUpdate(Body):
    """The connector's own fields beside its type; where that stays, what is left out does too."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra=described_by("sink", Form.MERGED, "{}DestinationUpdate"),
    )

    type: str = Field(min_length=1, max_length=50)


class SinkDestinationInput(SinkDestinationUpdate):
    """The connector's own fields beside its type."""

    model_config = ConfigDict(
        json_schema_extra=described_by("sink", Form.GIVEN, "{}DestinationInput")
    )


class UpdateSink(Body):
    name: Name | None = None
    status: StatusWord | None = None
    database: Text | None = None
    source: SinkSourceInput | None = None
    tables: Annotated[list[SinkTableInput], Field(max_length=1000)] | None = None
    actions: list[Literal["insert", "update", "delete"]] | None = None
    destination: SinkDestinationUpdate | None = None
    batch_size: Annotated[int, Field(ge=1, le=1000)] | None = None
    filter: Annotated[
        Literal["none", ""] | Annotated[list[ConditionInput], Field(max_length=100)] | None,
        BeforeValidator(_no_function),
    ] = None
    transform: Annotated[
        Literal["none", ""] | TransformInput | None, BeforeValidator(_no_function)
    ] = None
    timestamp_format: Literal["iso8601", "unix_microsecond"] | None = None
    max_retry_count: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    max_rejects: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    annotations: dict[str, Any] | None = None
    routing: Unsupported = None
    enrichment: Unsupported = None
    load_shedding_policy: Annotated[
        Literal["none", "", "pause_on_full"] | None, BeforeValidator(_supported_policy)
    ] = None
    message_grouping: Annotated[
        Literal["none", "", True] | None, BeforeValidator(_supported_grouping)
    ] = None

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
            timestamp_format=self.timestamp_format,
            max_retry_count=self.max_retry_count,
            max_rejects=self.max_rejects,
            annotations=self.annotations,
        )

    def _selection(self) -> Selection | None:
        return None if self.source is None else Selection.model_validate(self.source.model_dump())

    def _tables(self) -> tuple[SinkTable, ...] | None:
        if self.tables is None:
            return None
        return tuple(SinkTable.model_validate(table.model_dump()) for table in self.tables)

    def _filter(self) -> tuple[Condition, ...] | None:
        if "filter" not in self.model_fields_set:
            return None
        conditions = self.filter if isinstance(self.filter, list) else []
        return tuple(
            Condition(
                column_name=condition.column_name,
                operator=condition.operator,
                comparison_value=condition.comparison_value,
            )
            for condition in conditions
        )


class CreateSink(UpdateSink):
    name: Name
    database: Text
    destination: SinkDestinationInput
    initial_backfill: bool = False


class SinkSourceAnswer(BaseModel):
    include_schemas: list[str] | None
    exclude_schemas: list[str] | None
    include_tables: list[str] | None
    exclude_tables: list[str] | None


class SinkTableAnswer(BaseModel):
    name: str
    group_column_names: list[str] | None


class ConditionAnswer(BaseModel):
    column_name: str
    operator: str
    comparison_value: Any


class TransformAnswer(BaseModel):
    sql: str


class SinkDestinationAnswer(BaseModel):
    """The type and the connector's fields, its secrets masked."""

    model_config = ConfigDict(
        extra="allow", json_schema_extra=described_by("sink", Form.SHOWN, "{}Destination")
    )

    type: str


class SinkHealthCheck(BaseModel):
    name: str
    status: Literal["healthy", "warning", "error"]
    error: str | None


class SinkHealth(BaseModel):
    name: str
    status: Literal["healthy", "warning", "error"]
    checks: list[SinkHealthCheck]


class SinkAnswer(BaseModel):
    id: str
    name: str
    status: str = Field(description="active, disabled or paused")
    database: str
    source: SinkSourceAnswer
    tables: list[SinkTableAnswer]
    actions: list[str]
    destination: SinkDestinationAnswer
    filter: Literal["none"] | list[ConditionAnswer]
    transform: Literal["none"] | TransformAnswer
    routing: Literal["none"]
    enrichment: Literal["none"]
    message_grouping: bool
    load_shedding_policy: str
    batch_size: int | None
    max_retry_count: int | None
    max_rejects: int
    timestamp_format: str
    annotations: dict[str, Any]
    active_backfills: list[str]
    health: SinkHealth
    inserted_at: str
    updated_at: str


def show_sink(view: SinkView) -> SinkAnswer:
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
        filter=[
            ConditionAnswer.model_validate(condition.model_dump(mode="json"))
            for condition in sink.filter
        ]
        or "none",
        transform="none" if sink.transform is None else TransformAnswer(sql=sink.transform),
        routing="none",
        enrichment="none",
        message_grouping=True,
        load_shedding_policy="pause_on_full",
        batch_size=sink.batch_size,
        max_retry_count=sink.max_retry_count,
        max_rejects=sink.max_rejects,
        timestamp_format=sink.timestamp_format,
        annotations=dict(sink.annotations),
        active_backfills=[backfill.uid for backfill in view.active_backfills],
        health=_health(view),
        inserted_at=seconds(sink.created_at),
        updated_at=seconds(sink.updated_at),
    )


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
