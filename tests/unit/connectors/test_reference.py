"""The page about connectors says what the code says."""

from pathlib import Path

from refill.connectors.kit.reference import fill_page
from refill.connectors.kit.registry import load_connectors

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "connectors.md"


def test_the_tables_are_those_of_the_code() -> None:
    page = PAGE.read_text()
    assert fill_page(page) == page, (
        "run: python -m refill.connectors.kit.reference docs/reference/connectors.md"
    )


def test_every_field_is_described() -> None:
    for connector in load_connectors().values():
        for name, field in connector.options_model.model_fields.items():
            assert field.description or field.title, f"{connector.type}.{name} says nothing"
