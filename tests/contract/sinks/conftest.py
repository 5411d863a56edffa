"""Every bed, found by discovery; one fresh bed per test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.beds import spread
from tests.contract.sinks import beds
from tests.contract.sinks.bed import SinkBed


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    spread(metafunc, SinkBed, beds)


@pytest.fixture
def bed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SinkBed]:
    made: SinkBed = request.param(request, tmp_path)
    made.start()
    try:
        yield made
    finally:
        made.stop()
