"""The order of a test run: what is quick to say what is wrong comes first."""

from pathlib import Path

import pytest

SUITES = ("unit", "contract", "integration", "security", "acceptance", "browser", "faults")


def sort_suites(items: list[pytest.Item]) -> None:
    """Sorts by suite only: within one, the order stays pytest's own."""
    items.sort(key=lambda item: _rank(item.path))


def _rank(path: Path) -> int:
    parts = (
        path.relative_to(Path(__file__).parent).parts
        if path.is_relative_to(Path(__file__).parent)
        else ()
    )
    return SUITES.index(parts[0]) if parts and parts[0] in SUITES else len(SUITES)
