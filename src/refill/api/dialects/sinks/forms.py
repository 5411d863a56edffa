"""Forms that the answers of the sink dialect share: times, names, lists with a cursor."""

from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, Field

from refill.api.schema_names import word_of

A = TypeVar("A")

Name = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_ .:@+-]*$", min_length=1, max_length=200)
]
Text = Annotated[str, Field(min_length=1, max_length=1000)]
Count = Annotated[int, Field(ge=0)]


class Listed(BaseModel, Generic[A]):
    """A list; `next_cursor` comes with `limit`, and is null on the last page."""

    data: list[A] = Field(description="in the order of the list")
    next_cursor: str | None = Field(
        default=None, description="`cursor` of the next page; null on the last one"
    )

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        return f"{word_of(params[0])}List"


def seconds(moment: datetime) -> str:
    return _utc(moment, "seconds")


def microseconds(moment: datetime | None) -> str | None:
    return None if moment is None else _utc(moment, "microseconds")


def _utc(moment: datetime, precision: str) -> str:
    # several times as fast as strftime, and a list has thousands of them
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def listed(
    shown: list[A], *, limit: int | None, cursor: str | None, next_cursor: str | None
) -> Listed[A]:
    """Without a limit or a cursor the answer has no `next_cursor`: it is all there is."""
    if limit is None and cursor is None:
        return Listed[A](data=shown)
    return Listed[A](data=shown, next_cursor=next_cursor)
