"""A connector's options as a form: what to fill in, and what is filled in."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

from refill.connectors.kit.contract import Connector
from refill.service.options import secret_fields

Scalar = str | int | bool | None


class SettingChoiceAnswer(BaseModel):
    value: str = Field(description="what to send")
    label: str = Field(description="what to show")


class DestinationSettingAnswer(BaseModel):
    """One field of the form. A secret's value is never shown."""

    id: str = Field(description="the field's name")
    input_type: Literal["text", "password", "number", "checkbox", "select"] = Field(
        description="how it is filled in"
    )
    is_required: bool = Field(description="whether it must be")
    label: str = Field(description="what to show beside it")
    value: Scalar = Field(description="what is filled in; the default in an empty form")
    help_text: str | None = Field(description="what it is for")
    # empty rather than null: the vendor's client walks over it
    options: list[SettingChoiceAnswer] = Field(description="what a select offers")


class DestinationTypeAnswer(BaseModel):
    type: str = Field(description="which connector")
    title: str = Field(description="what its system is called")
    icon_url: str = Field(description="always empty")
    is_internal: bool = Field(False, description="always false")


def describe_type(connector: Connector) -> DestinationTypeAnswer:
    return DestinationTypeAnswer(
        type=connector.type, title=connector.title, icon_url="", is_internal=False
    )


def show_settings(
    connector: Connector, values: Mapping[str, Any] | None = None
) -> list[DestinationSettingAnswer]:
    """With `values` those of a destination, else the defaults of the form."""
    secrets = secret_fields(connector.options_model)
    return [
        _show(info.alias or name, info, name in secrets, values)
        for name, info in connector.options_model.model_fields.items()
        if name != "type"
    ]


def _show(
    name: str, info: FieldInfo, secret: bool, values: Mapping[str, Any] | None
) -> DestinationSettingAnswer:
    kinds = tuple(_kinds(info.annotation))
    choices = [str(choice) for kind in kinds for choice in _choices(kind)]
    input_type: Literal["text", "password", "number", "checkbox", "select"] = "text"
    if secret:
        input_type = "password"
    elif choices:
        input_type = "select"
    elif bool in kinds:
        input_type = "checkbox"
    elif int in kinds:
        input_type = "number"
    default = None if info.is_required() else info.get_default(call_default_factory=False)
    value = default if values is None else values.get(name, default)
    return DestinationSettingAnswer(
        id=name,
        input_type=input_type,
        is_required=info.is_required(),
        label=info.title or name.replace("_", " ").capitalize(),
        value=None if secret else _scalar(value),
        help_text=info.description,
        options=[SettingChoiceAnswer(value=choice, label=choice) for choice in choices],
    )


def _kinds(annotation: Any) -> Iterator[Any]:
    """The parts of a union, without None; anything else is itself."""
    if get_origin(annotation) is Literal or not get_args(annotation):
        yield annotation
        return
    for part in get_args(annotation):
        if part is not type(None):
            yield from _kinds(part)


def _choices(kind: Any) -> tuple[Any, ...]:
    if get_origin(kind) is Literal:
        return get_args(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return tuple(member.value for member in kind)
    return ()


def _scalar(value: Any) -> Scalar:
    if isinstance(value, Enum):
        return str(value.value)
    return value if value is None or isinstance(value, str | int | bool) else str(value)
