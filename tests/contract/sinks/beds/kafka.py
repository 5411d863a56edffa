"""Kafka: what a read-committed consumer sees of a fresh topic."""

import json
from collections.abc import Mapping
from typing import Any

from tests.contract.sinks.bed import Seen, SinkBed
from tests.servers.kafka import KafkaServer
from tests.servers.postgres import free_port
from tests.servers.read_committed import read_committed


class KafkaBed(SinkBed):
    fixture = "kafka"
    name = "kafka"
    connector_type = "kafka"
    server: KafkaServer
    topic: str

    def start(self) -> None:
        self.server = self.server_of()
        self.topic = self.server.create_topic()

    def options(self) -> Mapping[str, Any]:
        return {"hosts": self.server.hosts, "topic": self.topic}

    def unreachable(self) -> Mapping[str, Any]:
        return {"hosts": f"127.0.0.1:{free_port()}", "topic": self.topic}

    def refused(self) -> Mapping[str, Any]:
        return {"hosts": self.server.hosts, "topic": "no-such-topic"}

    def rows(self) -> list[Seen]:
        records = (json.loads(m.value)["record"] for m in read_committed(self.server, self.topic))
        return [(record["id"], record["note"]) for record in records]
