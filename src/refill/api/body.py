"""Request bodies: JSON whatever the Content-Type says, absent ones too, read strictly."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, from_json

from refill.domain.errors import Invalid, Malformed

M = TypeVar("M", bound=BaseModel)

# a JSON string may hold U+0000, which no PostgreSQL text can
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
# pydantic puts which member of a union it tried into the place: no user wrote that
_MEMBER = re.compile(r"str|int|float|bool|(constrained|function)-.*|[A-Z]\w*|.*[\[(].*")
BODY_MODEL = "body_model"


class Body(BaseModel):
    """A request's body: unknown keys are refused, and "1" is not 1."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


def body_of(model: type[M]) -> Any:
    """The dependency that reads the body: `body: Annotated[Model, body_of(Model)]`."""

    def read(request: Request) -> M:
        return parse_body(model, request.state.body)

    setattr(read, BODY_MODEL, model)  # for the OpenAPI document
    return Depends(read)


def parse_body(model: type[M], data: bytes) -> M:
    """Malformed without fields: not JSON. Malformed with fields: a field is missing or wrong.
    Invalid: nothing is wrong but keys that do not exist."""
    try:
        from_json(data or b"{}", allow_inf_nan=False)
    except ValueError as exc:
        raise Malformed(f"The body is not JSON: {exc}.") from exc
    if _NUL.search(data):
        raise Invalid.of("body", "has a NUL character (\\u0000) in a text; remove it")
    try:
        return model.model_validate_json(data or b"{}")
    except ValidationError as exc:
        raise problems_of(exc.errors(include_url=False)) from exc


def problems_of(
    errors: Iterable[ErrorDetails], name: Callable[[tuple[int | str, ...]], str] | None = None
) -> Invalid:
    """Our error for what pydantic found, by field."""
    fields: dict[str, list[str]] = defaultdict(list)
    only_unknown = True
    for error in errors:
        if error["type"] == "extra_forbidden":
            fields[_unknown(error["loc"], name or _dotted)].append("is not a known key")
        else:
            only_unknown = False
            fields[(name or _dotted)(error["loc"])].append(_sentence(error))
    summary = "; ".join(f"{field}: {', '.join(found)}" for field, found in fields.items())
    return Invalid(summary, fields) if only_unknown else Malformed(summary, fields)


def _unknown(location: tuple[int | str, ...], name: Callable[[tuple[int | str, ...]], str]) -> str:
    """The key as it was written, whatever it looks like."""
    *place, key = location
    above = name(tuple(place)) if place else "body"
    return str(key) if above in ("", "body") else f"{above}.{key}"


def _dotted(location: tuple[int | str, ...]) -> str:
    parts = [str(part) for part in location]
    return ".".join(part for part in parts if not _MEMBER.fullmatch(part)) or "body"


def _sentence(error: ErrorDetails) -> str:
    if error["type"] == "missing":
        return "is required"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    message = error["msg"]
    return message[:1].lower() + message[1:]
