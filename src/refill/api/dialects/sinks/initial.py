"""What a sink delivers as soon as it is made: nothing, everything, or some tables."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from refill.api.body import Body
from refill.api.dialects.sinks.backfills import Position
from refill.api.dialects.sinks.forms import Text
from refill.service.sink_freezer import BackfillRequest


class InitialTable(Body):
    table: Text = Field(description="schema.table, or table in public")
    type: Literal["full", "partial"] = Field("full", description="partial: with bounds")
    sort_column: Text | None = Field(None, description="partial: the column that the bounds are of")
    start_position: Position | None = Field(None, description="partial: its first value")
    end_position: Position | None = Field(None, description="partial: its last value")

    @model_validator(mode="after")
    def bounds_are_whole(self) -> "InitialTable":
        bounds = (self.start_position, self.end_position)
        if self.type == "partial" and (self.sort_column is None or bounds == (None, None)):
            raise ValueError("a partial backfill needs sort_column and start_position")
        if self.type == "full" and bounds != (None, None):
            raise ValueError("bounds belong to the type partial")
        return self

    def to_request(self) -> BackfillRequest:
        start, end = self.start_position, self.end_position
        return BackfillRequest(
            table=self.table,
            sort_column=self.sort_column,
            start_position=None if start is None else str(start),
            end_position=None if end is None else str(end),
        )


InitialBackfill = bool | Annotated[list[InitialTable], Field(max_length=1000)] | None
