"""Forms that the whole dialect shares: the envelope, times, dates, ids."""

import re
from datetime import UTC, date, datetime
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Path
from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema

from refill import logs
from refill.api.gate import MAX_ID
from refill.api.schema_names import word_of

T = TypeVar("T")

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DIGITS = re.compile(r"[0-9]{1,19}")


class Meta(BaseModel):
    request_id: str = Field(
        pattern=r"^[A-Za-z0-9_-]{1,50}$", description="also in the server's log"
    )


class Envelope(BaseModel, Generic[T]):
    """What nearly every answer is wrapped in."""

    meta: Meta = Field(description="about the request")
    data: T = Field(description="the answer itself")

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        return f"{word_of(params[0])}Envelope"


def wrap(data: T) -> Envelope[T]:
    meta = Meta(request_id=logs.request_id.get() or "none")
    return Envelope[Any](meta=meta, data=data)


def stamp(moment: datetime) -> str:
    """YYYY-MM-DDTHH:MM:SSZ"""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def stamp_or_none(moment: datetime | None) -> str | None:
    return None if moment is None else stamp(moment)


def shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _read_day(value: object) -> date:
    if not isinstance(value, str) or not _DAY.fullmatch(value):
        raise ValueError("a date of the form YYYY-MM-DD is needed")
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise ValueError(f"there is no date {value}") from None


def _read_id(value: object) -> int:
    if not _DIGITS.fullmatch(str(value)):
        raise ValueError("a whole number from 1 to 9223372036854775807 is needed")
    return int(str(value))


# a date in a body
Day = Annotated[
    date,
    BeforeValidator(_read_day),
    WithJsonSchema(
        {"type": "string", "format": "date", "maxLength": 10, "pattern": "^\\d{4}-\\d{2}-\\d{2}$"}
    ),
]
# an id in a path; the team's is checked before the route is reached
Id = Annotated[int, Field(ge=1, le=MAX_ID), BeforeValidator(_read_id), Path()]

# in answers
DayText = Annotated[str, Field(max_length=10, json_schema_extra={"format": "date"})]
TimeText = Annotated[str, Field(max_length=30, json_schema_extra={"format": "date-time"})]
Count = Annotated[int, Field(ge=0)]
