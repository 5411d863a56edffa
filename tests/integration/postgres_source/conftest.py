"""A source on a fresh database, and ways to compare what it reads with what PostgreSQL prints."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlparse

import psycopg
import pytest

from refill.connectors.kit.contract import Context
from refill.connectors.postgres.options import PostgresOptions
from refill.connectors.postgres.source import PostgresSource
from refill.domain.spec import KeyedRead, Read
from tests.servers.postgres import PostgresServer


def options_of(url: str, **changes: Any) -> PostgresOptions:
    parts = urlparse(url)
    return PostgresOptions(
        **{
            "hostname": parts.hostname,
            "port": parts.port,
            "database": parts.path[1:],
            "username": parts.username,
            "password": parts.password,
            **changes,
        }
    )


class Bed:
    """A database, a session in it, and the source that reads it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.options = options_of(url)
        self.sql = psycopg.connect(url, autocommit=True)
        self.source = self.open()

    def open(self, **changes: Any) -> PostgresSource:
        context = Context(team_id=1, files_root="/nowhere")
        return PostgresSource(options_of(self.url, **changes), context)

    def reading(self, table: str, schema: str = "public", **changes: Any) -> KeyedRead:
        found = self.source.find_table(schema, table)
        assert found is not None
        return KeyedRead(**{"table": found, "sort_columns": found.key, **changes})

    def rows(self, read: Read, extent: Any) -> list[dict[str, Any]]:
        return [row for batch in self.source.read(read, extent) for row in batch.to_pylist()]

    def close(self) -> None:
        self.source.close()
        self.sql.close()


@pytest.fixture
def bed(postgres_url: str) -> Iterator[Bed]:
    bed = Bed(postgres_url)
    yield bed
    bed.close()


@pytest.fixture
def with_contrib(postgres: PostgresServer) -> None:
    if not postgres.has_contrib:
        pytest.skip("needs PostgreSQL's contrib modules: apt-get install postgresql-contrib")
