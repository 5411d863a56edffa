"""What no import shows: words that belong to one room alone."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import refill

SOURCE = Path(refill.__file__).parent
# what an older version stored is written down as it was
HISTORY = SOURCE / "store" / "migrations" / "versions"


def lines(*but: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        if not any(path.is_relative_to(room) for room in but):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                yield f"{path.relative_to(SOURCE)}:{number}", line


def naming(word: str, *but: Path) -> list[str]:
    pattern = re.compile(rf"(?<![a-z]){word}(?![a-z])", re.IGNORECASE)
    return [place for place, line in lines(*but) if pattern.search(line)]


@pytest.mark.parametrize("word", ["oids?", "typmod", "relkind", "ctid"])
def test_the_catalogue_of_postgresql_is_known_to_its_connector_alone(word: str) -> None:
    assert naming(word, SOURCE / "connectors" / "postgres", HISTORY) == []
    assert naming(word, HISTORY), f"nothing is called {word}: what does this test look for?"


def test_what_a_field_carries_is_read_and_written_in_one_module() -> None:
    keys = re.compile(r"""["'](pg_type|form|nan)["']""")
    places = {place.split(":")[0] for place, line in lines() if keys.search(line)}
    assert places == {"connectors/kit/fields.py"}


def test_one_word_has_one_meaning() -> None:
    """An order is that of dates; an engine is what runs packs."""
    classes = re.compile(r"^class (\w*(?:Order|Engine)\w*)")
    found = {match[1] for _, line in lines() if (match := classes.match(line))}
    assert found == {"Order", "Engine", "SparkEngine", "InProcessEngine", "EngineUnavailable"}
