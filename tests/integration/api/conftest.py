"""One server per module; every test makes what it needs in it."""

from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest

from tests.integration.api.running import Running, running_server
from tests.servers.postgres import PostgresServer

TABLES = """
CREATE TABLE orders (id bigint PRIMARY KEY, region text, amount numeric, placed timestamptz);
INSERT INTO orders SELECT n, 'r' || n % 3, n, now() FROM generate_series(-50, 99950) n;
CREATE TABLE lines (b int, a int, note text, PRIMARY KEY (a, b));
CREATE TABLE codes (code text NOT NULL UNIQUE, label json);
CREATE TABLE heap (label text, doc json);
INSERT INTO heap SELECT 'x' || n FROM generate_series(1, 100) n;
CREATE VIEW recent AS SELECT * FROM orders;
CREATE SCHEMA "other place";
CREATE TABLE "other place"."Mixed Case" (id int PRIMARY KEY);
ANALYZE;
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running_server(tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture
def api(server: Running) -> Iterator[httpx.Client]:
    """A client of team 1 that may do everything."""
    with server.client() as client:
        yield client


@pytest.fixture(scope="module")
def database_url(postgres: PostgresServer) -> str:
    url = postgres.create_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(TABLES)
    return url


@pytest.fixture(scope="module")
def database(server: Running, database_url: str) -> Iterator[dict[str, Any]]:
    with server.client() as api:
        yield server.make_database(api, url=database_url)
