"""Every bed, found by discovery; one fresh bed per test."""

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.sinks import beds
from tests.contract.sinks.bed import SinkBed


def _find_beds() -> list[type[SinkBed]]:
    found: list[type[SinkBed]] = []
    for module in pkgutil.iter_modules(beds.__path__):
        loaded = importlib.import_module(f"{beds.__name__}.{module.name}")
        for thing in vars(loaded).values():
            concrete = isinstance(thing, type) and issubclass(thing, SinkBed)
            if concrete and "name" in vars(thing) and thing.__module__ == loaded.__name__:
                found.append(thing)
    return sorted(found, key=lambda bed: bed.name)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test runs over every bed, or over those that it says it is for (`for_beds`)."""
    if "bed" in metafunc.fixturenames:
        applies = getattr(metafunc.function, "applies_to", lambda bed: True)
        chosen = [bed for bed in _find_beds() if applies(bed)]
        metafunc.parametrize("bed", chosen, ids=[bed.name for bed in chosen], indirect=True)


@pytest.fixture
def bed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SinkBed]:
    made: SinkBed = request.param(request, tmp_path)
    made.start()
    try:
        yield made
    finally:
        made.stop()
