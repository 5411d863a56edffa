"""A running server, and the vendor's client in both colours."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.vendor_client.calling import Call, caller
from tests.integration.transfers.stage import Stage, running_stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with running_stage(tmp_path) as running:
        yield running


@pytest.fixture(params=["sync", "async"])
def call(stage: Stage, request: pytest.FixtureRequest) -> Call:
    return caller(stage, request.param)
