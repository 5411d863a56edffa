"""A database of the test run's PostgreSQL."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import psycopg

from tests.contract.source.bed import SourceBed, rows_of
from tests.servers.postgres import free_port


class PostgresBed(SourceBed):
    name = "postgres"
    connector_type = "postgres"
    fixture = "postgres_url"
    keyless_name = "keyless"
    query = "SELECT id, extra FROM rows WHERE day = :date"

    def start(self) -> None:
        self.url = self.server_of()
        self.run("CREATE TABLE rows (id bigint PRIMARY KEY, day date, extra text)")
        with psycopg.connect(self.url) as connection:
            connection.cursor().executemany("INSERT INTO rows VALUES (%s, %s, %s)", rows_of())
        self.run("CREATE TABLE keyless AS SELECT * FROM rows ORDER BY id")

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

    def drop_column(self) -> None:
        self.run("ALTER TABLE rows DROP COLUMN extra")

    def drop_table(self) -> None:
        self.run("DROP TABLE rows")

    def run(self, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)
