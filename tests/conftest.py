"""Fixtures that every suite shares: one PostgreSQL per test run, fresh databases in it."""

import os
from collections.abc import Iterator

import pytest

from tests.absent import pytest_terminal_summary
from tests.contract.beds import pytest_addoption
from tests.marks import mark_needs
from tests.order import sort_suites
from tests.servers.brokers import kafka, nats_server, rabbitmq, redis_server  # noqa: F401
from tests.servers.postgres import PostgresServer, running_postgres

__all__ = ["pytest_addoption", "pytest_terminal_summary"]  # hooks that pytest finds

# A test's Spark lives for seconds: compiling for a long life takes half of the CPU of its start.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_needs(items)
    sort_suites(items)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The server of this test run."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    """A fresh empty database."""
    return postgres.create_database()
