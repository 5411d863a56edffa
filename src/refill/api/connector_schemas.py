"""Connectors' options in the OpenAPI document, taken from the connectors that are there.

A model of a body or an answer that depends on a connector says so by `described_by`, and knows no
connector itself: the service checks the options. In the document it is a union, told apart by
`type`. The options stand in the model's `fields` where it has such a property, else beside `type`.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Literal

from pydantic import JsonValue

from refill.api.schema_names import REF
from refill.connectors.kit.contract import Connector

Role = Literal["sink", "destination"]
_MARK = "x-described-by"


class Form(StrEnum):
    GIVEN = "given"
    MERGED = "merged"  # what is left out stays as it is
    REPLACED = "replaced"  # secrets that are left out stay as they are
    SHOWN = "shown"  # secrets are masked, and nothing is left out


def described_by(role: Role, form: Form, member: str) -> dict[str, JsonValue]:
    """`json_schema_extra` of a model; `member` names its schemas by connector: `{}Destination`."""
    return {_MARK: [role, form.value, member]}


def describe_connectors(
    schemas: dict[str, Any], connectors: Mapping[Role, Iterable[Connector]]
) -> None:
    """Every schema that was marked becomes a union with a member for each connector of its role."""
    for name, schema in [*schemas.items()]:
        if _MARK in schema:
            role, form, member = schema.pop(_MARK)
            members = {
                connector.type: _add_member(schemas, schema, connector, Form(form), member)
                for connector in connectors[role]
            }
            schemas[name] = {
                "title": name,
                "description": schema.get("description", ""),
                "oneOf": [{"$ref": reference} for reference in members.values()],
                "discriminator": {"propertyName": "type", "mapping": members},
            }


def _add_member(
    schemas: dict[str, Any], whole: dict[str, Any], connector: Connector, form: Form, member: str
) -> str:
    """Adds the schema of one connector's body or answer; returns the reference to it."""
    words = re.split("[^A-Za-z0-9]+", connector.type)
    word = "".join(part[:1].upper() + part[1:] for part in words)
    name = member.format(word)
    properties = {**whole["properties"], "type": _type_of(connector)}
    if "fields" in properties:
        fields = f"{word}FieldsUpdate" if form is Form.REPLACED else f"{word}Fields"
        schemas[fields] = _options(schemas, connector, form, fields)
        properties["fields"] = {"$ref": REF.format(model=fields)}
        schemas[name] = {**whole, "properties": properties}
    else:
        options = _options(schemas, connector, form, name)
        properties |= options["properties"]
        required = ["type", *options.get("required", ())]
        schemas[name] = {**options, "properties": properties, "required": required}
    schemas[name] |= {"title": connector.title, "description": _description(connector)}
    return REF.format(model=name)


def _options(
    schemas: dict[str, Any], connector: Connector, form: Form, name: str
) -> dict[str, Any]:
    """The connector's own model as a schema; the models inside it go by its name too."""
    options = connector.options_model.model_json_schema(
        mode="serialization" if form is Form.SHOWN else "validation",
        ref_template=REF.format(model=f"{name}{{model}}"),
    )
    for inner, definition in options.pop("$defs", {}).items():
        schemas[f"{name}{inner}"] = definition
    properties = options["properties"]
    secrets = {option for option, schema in properties.items() if _readable(schema) != schema}
    # a secret's is masked; and in the other forms nothing stands for what is left out
    for option in secrets if form in (Form.GIVEN, Form.REPLACED) else properties:
        properties[option].pop("default", None)
    if form is Form.SHOWN:
        options["properties"] = {option: _readable(found) for option, found in properties.items()}
        options["required"] = [*properties]
    elif form is Form.MERGED:
        options.pop("required", None)
    elif form is Form.REPLACED:
        options["required"] = [
            option for option in options.get("required", ()) if option not in secrets
        ]
    return {**options, "title": connector.title, "description": _description(connector)}


def _readable(schema: Any) -> Any:
    """Without the mark of secrets, which an answer would not have; it shows their masks."""
    if isinstance(schema, dict):
        return {name: _readable(found) for name, found in schema.items() if name != "writeOnly"}
    return [_readable(found) for found in schema] if isinstance(schema, list) else schema


def _type_of(connector: Connector) -> dict[str, Any]:
    return {"type": "string", "const": connector.type, "description": connector.title}


def _description(connector: Connector) -> str:
    about = " ".join((connector.options_model.__doc__ or "").split())
    if connector.guarantee is None:
        return about or connector.title
    promise = "; ".join(filter(None, (connector.guarantee, connector.guarantee_note)))
    return f"{about} Guarantee: {promise}.".lstrip()
