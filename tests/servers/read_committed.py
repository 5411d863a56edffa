"""A consumer in read-committed mode, as the users of a topic have one."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

from confluent_kafka import Consumer, TopicPartition

from tests.servers.kafka import KafkaServer


@dataclass(frozen=True, slots=True)
class Received:
    key: bytes | None
    value: bytes
    partition: int


def read_committed(server: KafkaServer, topic: str, deadline_seconds: float = 60) -> list[Received]:
    """Every committed message up to the topic's present end; open transactions end it before."""
    return list(_committed(server, topic, deadline_seconds))


def count_committed(
    server: KafkaServer, topic: str, deadline_seconds: float = 60
) -> Counter[bytes | None]:
    """How often each key is there; keeps no message, so that there may be millions."""
    return Counter(message.key for message in _committed(server, topic, deadline_seconds))


def _committed(server: KafkaServer, topic: str, deadline_seconds: float) -> Iterator[Received]:
    consumer = Consumer(
        {
            "bootstrap.servers": server.hosts,
            "group.id": f"reader-{uuid4().hex}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        partitions = consumer.list_topics(topic, 10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        ended: set[int] = set()
        deadline = time.monotonic() + deadline_seconds
        while len(ended) < len(partitions):
            assert time.monotonic() < deadline, "the topic could not be read to its end"
            for message in consumer.consume(10_000, 0.2):
                error = message.error()
                if error is None:
                    assert message.value() is not None
                    yield Received(message.key(), message.value(), message.partition())
                else:
                    ended.add(message.partition())
    finally:
        consumer.close()
