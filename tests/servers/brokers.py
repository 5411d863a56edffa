"""Fixtures of the brokers: each is started once per test run, when the first test asks for it."""

from collections.abc import Iterator

import pytest

from tests.servers.kafka import KafkaServer, running_kafka
from tests.servers.nats import NatsServer, running_nats
from tests.servers.rabbitmq import RabbitServer, running_rabbitmq
from tests.servers.redis import RedisServer, running_redis


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaServer]:
    """The broker of this test run. A test that stops it starts it again."""
    with running_kafka() as server:
        yield server


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    with running_redis() as server:
        yield server


@pytest.fixture(scope="session")
def nats_server() -> Iterator[NatsServer]:
    with running_nats() as server:
        yield server


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[RabbitServer]:
    with running_rabbitmq() as server:
        yield server
