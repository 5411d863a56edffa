"""Fixtures that every suite shares: one PostgreSQL per test run, fresh databases in it."""

from collections.abc import Iterator

import pytest

from tests.absent import pytest_terminal_summary
from tests.order import pytest_collection_modifyitems
from tests.servers.brokers import kafka, nats_server, rabbitmq, redis_server  # noqa: F401
from tests.servers.postgres import PostgresServer, running_postgres

__all__ = ["pytest_collection_modifyitems", "pytest_terminal_summary"]  # hooks that pytest finds


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The server of this test run."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    """A fresh empty database."""
    return postgres.create_database()
