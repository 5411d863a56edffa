"""Every bed, found by discovery; one fresh bed per test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.sinks.bed import SinkBed
from tests.contract.sinks.discovery import find_beds
from tests.marks import NEEDS


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test runs over every bed, or over those that it says it is for (`for_beds`)."""
    if "bed" in metafunc.fixturenames:
        applies = getattr(metafunc.function, "applies_to", lambda bed: True)
        chosen = [bed for bed in find_beds() if applies(bed)]
        metafunc.parametrize("bed", [_param(bed) for bed in chosen], indirect=True)


def _param(bed: type[SinkBed]) -> object:
    marks = [getattr(pytest.mark, NEEDS[bed.fixture])] if bed.fixture else []
    return pytest.param(bed, id=bed.name, marks=marks)


@pytest.fixture
def bed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SinkBed]:
    made: SinkBed = request.param(request, tmp_path)
    made.start()
    try:
        yield made
    finally:
        made.stop()
