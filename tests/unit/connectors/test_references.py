"""Options that name stored objects are declared by the connector, and known to nobody else."""

from pathlib import Path

import pytest

import refill
from refill.connectors.kit.contract import Connector, Options, Reference
from refill.connectors.kit.registry import load_connectors
from refill.domain.stored import Stored
from tests.contract.store.factories import make_endpoint

SOURCES = Path(refill.__file__).parent


@pytest.mark.parametrize("room", ["service", "worker"])
def test_no_file_names_the_connector_that_refers(room: str) -> None:
    files = list((SOURCES / room).rglob("*.py"))
    assert files
    assert [file.name for file in files if "webhook" in file.read_text().lower()] == []


def test_every_reference_is_an_option_of_its_connector() -> None:
    declared = {
        (connector.type, option): reference
        for connector in load_connectors().values()
        for option, reference in connector.references.items()
    }
    assert ("webhook", "http_endpoint") in declared
    for (type_name, option), reference in declared.items():
        fields = load_connectors()[type_name].options_model.model_fields
        assert {option, reference.instead or option} <= set(fields)


def test_only_what_is_named_is_looked_up() -> None:
    class PigeonOptions(Options):
        loft: str | None = None

    pigeon = Connector(
        type="pigeon",
        title="Pigeon",
        options_model=PigeonOptions,
        references={
            "loft": Reference(
                to=Stored.HTTP_ENDPOINT, merge=lambda options, loft: {**options, "at": loft.url}
            )
        },
    )
    asked: list[tuple[Stored, str]] = []
    endpoint = make_endpoint()

    def find(kind: Stored, name: str) -> object:
        asked.append((kind, name))
        return endpoint

    assert pigeon.resolved({"loft": None}, find) == {"loft": None}  # type: ignore[arg-type]
    found = pigeon.resolved({"loft": "home"}, find)  # type: ignore[arg-type]
    assert found == {"loft": "home", "at": endpoint.url}
    assert asked == [(Stored.HTTP_ENDPOINT, "home")]
