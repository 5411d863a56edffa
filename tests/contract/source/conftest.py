"""Every bed, found by discovery; one fresh bed per test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from refill.connectors.kit.contract import Source
from refill.domain.spec import KeyedRead
from tests.contract.beds import spread
from tests.contract.source import beds
from tests.contract.source.bed import SourceBed


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    spread(metafunc, SourceBed, beds)


@pytest.fixture
def bed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SourceBed]:
    made: SourceBed = request.param(request, tmp_path)
    made.start()
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def source(bed: SourceBed) -> Iterator[Source]:
    source = bed.open()
    yield source
    source.close()


@pytest.fixture
def read(bed: SourceBed, source: Source) -> KeyedRead:
    """The table `rows`, all of it."""
    return bed.read(source)
