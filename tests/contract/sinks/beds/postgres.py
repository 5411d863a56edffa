"""A database of the test run's PostgreSQL, read with SQL."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import psycopg

from refill.domain.pipeline import Kind
from tests.contract.sinks.bed import Seen, SinkBed
from tests.servers.postgres import free_port


class _Postgres(SinkBed):
    fixture = "postgres_url"
    connector_type = "postgres"
    columns = ("id", "note", "day")

    def start(self) -> None:
        self.url = self.server_of()

    def options(self) -> Mapping[str, Any]:
        parts = urlsplit(self.url)
        return {
            "hostname": parts.hostname,
            "port": parts.port,
            "database": parts.path.removeprefix("/"),
            "username": parts.username,
            "password": parts.password,
        }

    def unreachable(self) -> Mapping[str, Any]:
        return {**self.options(), "port": free_port()}

    def refused(self) -> Mapping[str, Any]:
        return {**self.options(), "password": "wrong"}

    def rows(self) -> list[Seen]:
        with psycopg.connect(self.url) as connection:
            try:
                return connection.execute("SELECT id, note FROM public.orders").fetchall()  # type: ignore[return-value]
            except psycopg.errors.UndefinedTable:
                return []


class PostgresSinkBed(_Postgres):
    name = "postgres-sink"


class PostgresTransferBed(_Postgres):
    name = "postgres-transfer"
    kind = Kind.TRANSFER
