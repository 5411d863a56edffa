"""Fixtures of the brokers: each is started once per test run, when the first test asks for it."""

from collections.abc import Iterator

import pytest

from tests.servers.kafka import KafkaServer, running_kafka


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaServer]:
    """The broker of this test run. A test that stops it starts it again."""
    with running_kafka() as server:
        yield server
