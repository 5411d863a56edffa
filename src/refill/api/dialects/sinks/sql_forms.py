"""What a sink says in SQL, or by a path; and what to write where the original names a function."""

from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel, Field, model_validator

from refill.api.body import Body

NONE = ("none", "", None)
_LONGEST = 20_000

# the common cases of the original's functions
_INSTEAD = {
    "transform": (
        'for the record alone {"path": "record"}, for a part of it {"path": "record.id"}, for '
        "another message {\"sql\": \"select id, named_struct('id', id, 'name', upper(name)) as "
        'message from source"}'
    ),
    "filter": (
        "a list of conditions, or {\"sql\": \"amount > 10 and details ->> 'kind' = 'order'\"}"
    ),
    "routing": '{"sql": "select concat(\'orders-\', region) as topic, id as key from source"}',
    "enrichment": '{"sql": "select id, name from customers where id = any(:keys)"}',
}


def no_function(field: str) -> Callable[[object], object]:
    """Refuses the name of a function, and shows what does the same here."""

    def check(value: object) -> object:
        named = isinstance(value, str) and value not in NONE
        given = isinstance(value, dict) and any("function" in str(name) for name in value)
        if named or given:
            raise ValueError(f"the original's functions are not run here; write {_INSTEAD[field]}")
        return value

    return check


class FilterSqlInput(Body):
    sql: str = Field(min_length=1, max_length=_LONGEST, description="a condition in Spark SQL")


class TransformInput(Body):
    sql: str | None = Field(
        None,
        min_length=1,
        max_length=_LONGEST,
        description="one SELECT of Spark SQL from the view source; its column message, where it "
        "makes one, is the whole message",
    )
    path: str | None = Field(
        None,
        min_length=1,
        max_length=500,
        description="the part of the message that is sent alone: record, record.id, metadata, …",
    )

    @model_validator(mode="after")
    def is_one_of_them(self) -> "TransformInput":
        if (self.sql is None) == (self.path is None):
            raise ValueError("give either sql or path")
        return self


class RoutingInput(Body):
    sql: str = Field(
        min_length=1,
        max_length=_LONGEST,
        description="one SELECT of Spark SQL from the view source, of the fields that the sink has",
    )


class EnrichmentInput(Body):
    sql: str = Field(
        min_length=1,
        max_length=_LONGEST,
        description="a query of the source's SQL with :keys, the primary keys of a batch, in it",
    )


class SqlAnswer(BaseModel):
    sql: str = Field(description="as it was given")


class PathAnswer(BaseModel):
    path: str = Field(description="the part of the message that is sent alone")


def shown_sql(sql: str | None) -> Literal["none"] | SqlAnswer:
    return "none" if sql is None else SqlAnswer(sql=sql)


def shown_path(path: str | None) -> PathAnswer | None:
    return None if path is None else PathAnswer(path=path)
