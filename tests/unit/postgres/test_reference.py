"""The page of types is what the code says."""

from pathlib import Path

from refill.connectors.postgres.reference import render

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "types.md"


def test_the_page_of_types_is_made_from_the_code() -> None:
    assert PAGE.read_text() == render(), (
        "run: python -m refill.connectors.postgres.reference > docs/reference/types.md"
    )
