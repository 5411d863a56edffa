"""A server to attack, over a fresh store."""

from collections.abc import Iterator

import httpx
import pytest

from tests.integration.api.running import Running, running_server
from tests.spark import spark_engine

__all__ = ["spark_engine"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running_server(tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture
def api(server: Running) -> Iterator[httpx.Client]:
    """A client of team 1 that may do everything."""
    with server.client() as client:
        yield client
