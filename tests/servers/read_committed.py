"""A consumer in read-committed mode, as the users of a topic have one."""

import time
from dataclasses import dataclass
from uuid import uuid4

from confluent_kafka import Consumer, TopicPartition

from tests.servers.kafka import KafkaServer


@dataclass(frozen=True)
class Received:
    key: bytes | None
    value: bytes
    partition: int


def read_committed(server: KafkaServer, topic: str, deadline_seconds: float = 60) -> list[Received]:
    """Every committed message up to the topic's present end; open transactions end it before."""
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
        received: list[Received] = []
        ended: set[int] = set()
        deadline = time.monotonic() + deadline_seconds
        while len(ended) < len(partitions):
            assert time.monotonic() < deadline, "the topic could not be read to its end"
            for message in consumer.consume(10_000, 0.2):
                error = message.error()
                if error is None:
                    assert message.value() is not None
                    received.append(Received(message.key(), message.value(), message.partition()))
                else:
                    ended.add(message.partition())
        return received
    finally:
        consumer.close()
