"""One server per module; every test makes what it needs in it."""

from collections.abc import Iterator

import httpx
import pytest

from tests.integration.api.running import Running, running_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running_server(tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture
def api(server: Running) -> Iterator[httpx.Client]:
    """A client of team 1 that may do everything."""
    with server.client() as client:
        yield client
