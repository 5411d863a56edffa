"""The OpenAPI document, as those read it who write a client by it."""

from collections.abc import Iterator
from typing import Any, ClassVar, cast

import jsonschema_rs
import pytest
from pydantic import BaseModel, Field, SecretStr

from refill.api.app import create_app
from refill.connectors.kit.contract import Connector, Options
from refill.connectors.kit.registry import load_connectors
from refill.service import Service
from refill.service.options import MASK, masked
from refill.settings import Settings
from refill.store.port import Store

Document = dict[str, Any]
NO_STORE = cast("Store", None)  # nothing is asked of it
REF = "#/components/schemas/"


class AcmePlace(BaseModel):
    shelf: str = Field(description="which shelf")


class AcmeOptions(Options):
    live: ClassVar[frozenset[str]] = frozenset({"token"})

    place: AcmePlace = Field(description="where in the warehouse")
    token: SecretStr = Field(description="what lets us in")


ACME = Connector(
    type="acme-depot",
    title="Acme Depot",
    options_model=AcmeOptions,
    is_sink=True,
    is_destination=True,
)


def make_document(*others: Connector) -> Document:
    connectors = {**load_connectors(), **{other.type: other for other in others}}
    settings = Settings()
    service = Service(store=NO_STORE, connectors=connectors, settings=settings)
    return create_app(service, settings).openapi()


@pytest.fixture(scope="module")
def document() -> Document:
    return make_document()


@pytest.fixture(scope="module")
def acme() -> Document:
    return make_document(ACME)


def walk(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            yield from walk(inner)


def operations(document: Document) -> list[dict[str, Any]]:
    return [each for path in document["paths"].values() for each in path.values()]


def schema(document: Document, name: str) -> Any:
    return document["components"]["schemas"][name]


def check(document: Document, name: str, value: object) -> None:
    whole = {"$ref": REF + name, "components": document["components"]}
    jsonschema_rs.validator_for(whole).validate(value)


def options_named(connector: Connector) -> set[str]:
    fields = connector.options_model.model_fields.items()
    return {field.alias or name for name, field in fields}


def test_schemas_are_called_by_words_of_the_product(acme: Document) -> None:
    names = set(acme["components"]["schemas"])
    assert [name for name in names if "_" in name or "refill" in name.lower()] == []
    assert {
        *("Sink", "SinkBackfill", "SinkBackfillList", "KafkaDestination", "Database"),
        *("Transfer", "TransferBackfill", "TransferBackfillEnvelope", "TransferDestination"),
    } <= names


def test_every_reference_leads_somewhere(acme: Document) -> None:
    names = {REF + name for name in acme["components"]["schemas"]}
    parts = list(walk(acme))
    assert {part["$ref"] for part in parts if "$ref" in part} <= names
    unions = [part["discriminator"]["mapping"] for part in parts if "discriminator" in part]
    assert {place for mapping in unions for place in mapping.values()} <= names


def test_every_schema_is_used(acme: Document) -> None:
    used = {part["$ref"] for part in walk(acme) if "$ref" in part}
    assert {REF + name for name in acme["components"]["schemas"]} - used == set()


def test_every_operation_has_a_summary_and_a_name_of_its_own(document: Document) -> None:
    found = operations(document)
    assert all(operation["summary"] for operation in found)
    assert len({operation["operationId"] for operation in found}) == len(found)


def test_every_field_of_every_schema_is_described(document: Document) -> None:
    def described(field: dict[str, Any]) -> bool:
        target = schema(document, field["$ref"].removeprefix(REF)) if "$ref" in field else field
        return bool(field.get("description") or target.get("description"))

    assert [
        f"{name}.{field}"
        for name, found in document["components"]["schemas"].items()
        for field, inside in found.get("properties", {}).items()
        if not described(inside)
    ] == []


def test_a_sinks_destination_is_one_of_the_connectors_that_are_sinks(document: Document) -> None:
    sinks = {each.type: each for each in load_connectors().values() if each.is_sink}
    for name in ("SinkDestination", "SinkDestinationInput", "SinkDestinationUpdate"):
        mapping = schema(document, name)["discriminator"]["mapping"]
        assert set(mapping) == set(sinks)
        assert [{"$ref": place} for place in mapping.values()] == schema(document, name)["oneOf"]
        for kind, place in mapping.items():
            member = schema(document, place.removeprefix(REF))
            assert member["title"] == sinks[kind].title
            assert member["properties"]["type"]["const"] == kind
            assert set(member["properties"]) == {"type", *options_named(sinks[kind])}


def test_a_transfers_destination_is_one_of_the_connectors_that_are_destinations(
    document: Document,
) -> None:
    found = {each.type: each for each in load_connectors().values() if each.is_destination}
    for verb in ("Create", "Update", "Test"):
        mapping = schema(document, f"{verb}TransferDestination")["discriminator"]["mapping"]
        assert set(mapping) == set(found)
        for kind, place in mapping.items():
            body = schema(document, place.removeprefix(REF))
            assert body["properties"]["type"]["const"] == kind
            fields = schema(document, body["properties"]["fields"]["$ref"].removeprefix(REF))
            assert set(fields["properties"]) == options_named(found[kind])


def test_a_connector_of_another_package_is_in_the_document(acme: Document) -> None:
    given = {"place": {"shelf": "A"}, "token": "x"}
    check(acme, "SinkDestinationInput", {"type": "acme-depot", **given})
    body = {"type": "acme-depot", "display_name": "depot"}
    check(acme, "CreateTransferDestination", {**body, "fields": given})
    assert schema(acme, "AcmeDepotDestination")["title"] == "Acme Depot"
    for short in ({"token": "x"}, {"place": {}, "token": "x"}):
        with pytest.raises(jsonschema_rs.ValidationError):
            check(acme, "SinkDestinationInput", {"type": "acme-depot", **short})


def test_what_may_be_left_out_is_not_required(acme: Document) -> None:
    place = {"place": {"shelf": "A"}}
    check(acme, "SinkDestinationUpdate", {"type": "acme-depot"})
    body = {"type": "acme-depot", "display_name": "depot", "fields": place}
    check(acme, "UpdateTransferDestination", body)
    with pytest.raises(jsonschema_rs.ValidationError):
        check(acme, "CreateTransferDestination", body)
    with pytest.raises(jsonschema_rs.ValidationError):
        check(acme, "UpdateTransferDestination", {**body, "fields": {}})


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("files", {"path": "out"}),
        ("kafka", {"hosts": "a:9092", "topic": "t", "username": "u", "password": "p"}),
        ("nats", {"host": "a", "password": "p"}),
        ("postgres", {"hostname": "a", "database": "d", "username": "u", "password": "p"}),
        ("rabbitmq", {"host": "a", "exchange": "e"}),
        ("redis_stream", {"host": "a", "stream_key": "k"}),
        ("redis_string", {"host": "a", "expire_ms": 1}),
        ("webhook", {"http_endpoint": "hook", "headers": {"X-Key": "k"}}),
    ],
)
def test_what_is_sent_and_what_is_shown_are_as_the_document_says(
    document: Document, kind: str, options: dict[str, Any]
) -> None:
    check(document, "SinkDestinationInput", {"type": kind, **options})
    shown = {"type": kind, **masked(load_connectors()[kind], options)}
    check(document, "SinkDestination", shown)
    # what was read can be written back
    check(document, "SinkDestinationUpdate", shown)
    del shown[next(iter(options))]
    with pytest.raises(jsonschema_rs.ValidationError):
        check(document, "SinkDestination", shown)


def test_no_secret_is_in_the_document(document: Document) -> None:
    for part in walk(document):
        if part.get("format") == "password":
            assert "default" not in part
    shown = schema(document, "RabbitmqDestination")["properties"]["password"]
    assert "writeOnly" not in shown
    assert MASK not in str(document)
