"""Redis: what a reader of the stream, or of the keys, finds."""

import itertools
import json
from collections.abc import Mapping
from typing import Any, ClassVar

import redis

from tests.contract.sinks.bed import Seen, SinkBed
from tests.servers.postgres import free_port
from tests.servers.redis import RedisServer

_DATABASES = itertools.count(1)


class _Redis(SinkBed):
    fixture = "redis_server"
    server: RedisServer
    client: redis.Redis
    more: ClassVar[Mapping[str, Any]] = {}

    def start(self) -> None:
        self.server = self.server_of()
        self.database = next(_DATABASES)
        self.client = redis.Redis(self.server.host, self.server.port, db=self.database)

    def stop(self) -> None:
        self.client.close()

    def options(self) -> Mapping[str, Any]:
        place = {"host": self.server.host, "port": self.server.port, "database": self.database}
        return {**place, **self.more}

    def unreachable(self) -> Mapping[str, Any]:
        return {**self.options(), "port": free_port()}

    def refused(self) -> Mapping[str, Any]:
        return {**self.options(), "username": "nobody", "password": "wrong"}


class RedisStreamBed(_Redis):
    name = "redis-stream"
    connector_type = "redis_stream"
    more: ClassVar[Mapping[str, Any]] = {"stream_key": "orders"}

    def rows(self) -> list[Seen]:
        entries = self.client.xrange("orders")
        records = [json.loads(fields[b"record"]) for _, fields in entries]
        return [(record["id"], record["note"]) for record in records]


class RedisStringBed(_Redis):
    name = "redis-string"
    connector_type = "redis_string"

    def rows(self) -> list[Seen]:
        names = self.client.keys("sequin:orders:*")
        records = [json.loads(text)["record"] for text in self.client.mget(names)] if names else []
        return [(record["id"], record["note"]) for record in records]
