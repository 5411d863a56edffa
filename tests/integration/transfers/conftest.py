"""A server of its own for a test that runs slices; one per module for those that only ask."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.integration.transfers.stage import Stage, running_stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with running_stage(tmp_path) as running:
        yield running


@pytest.fixture
def api(stage: Stage) -> Iterator[httpx.Client]:
    """A client that may do everything, below the team's path."""
    with stage.client() as client:
        yield client


@pytest.fixture(scope="module")
def shared_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with running_stage(tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture
def shared_api(shared_stage: Stage) -> Iterator[httpx.Client]:
    with shared_stage.client() as client:
        yield client
