"""RabbitMQ: what a consumer of a bound queue gets."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pika

from tests.contract.sinks.bed import Seen, SinkBed
from tests.servers.postgres import free_port
from tests.servers.rabbitmq import RabbitServer


class RabbitBed(SinkBed):
    fixture = "rabbitmq"
    name = "rabbitmq"
    connector_type = "rabbitmq"
    server: RabbitServer

    def start(self) -> None:
        self.server = self.server_of()
        self.exchange = f"orders-{uuid4().hex[:8]}"
        self._seen: list[Seen] = []
        self._connection = pika.BlockingConnection(
            pika.ConnectionParameters(self.server.host, self.server.port)
        )
        self._channel = self._connection.channel()
        self._channel.exchange_declare(self.exchange, "topic", durable=True)
        self._channel.queue_declare(self.exchange, durable=True)
        self._channel.queue_bind(self.exchange, self.exchange, "sequin.shop.public.orders.*")

    def stop(self) -> None:
        self._channel.queue_delete(self.exchange)
        self._channel.exchange_delete(self.exchange)
        self._connection.close()

    def options(self) -> Mapping[str, Any]:
        return {"host": self.server.host, "port": self.server.port, "exchange": self.exchange}

    def unreachable(self) -> Mapping[str, Any]:
        return {**self.options(), "port": free_port()}

    def refused(self) -> Mapping[str, Any]:
        return {**self.options(), "exchange": "no-such-exchange"}

    def rows(self) -> list[Seen]:
        while True:
            method, _, body = self._channel.basic_get(self.exchange, auto_ack=True)
            if method is None or body is None:
                return list(self._seen)
            record = json.loads(body)["record"]
            self._seen.append((record["id"], record["note"]))
