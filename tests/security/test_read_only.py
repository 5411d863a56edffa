"""A transfer's query only reads, whatever it sets, and leaves nothing behind for the next slice."""

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import httpx
import psycopg
import pytest

from refill.cli.root import run
from refill.domain.errors import RefillError
from refill.domain.slice import Dated, KeyRange
from refill.domain.spec import KeyedRead, QueryRead
from tests.integration.api.running import running_server
from tests.integration.postgres_source.conftest import Bed
from tests.servers.postgres import PostgresServer

DAY = Dated(date=date(2024, 1, 1))
SETTINGS = """
CREATE TABLE t (id int);
CREATE FUNCTION write(setting text, here bool) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config(setting, 'off', here);
    INSERT INTO t VALUES (1);
    RETURN 1;
END $$;
CREATE FUNCTION free() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('default_transaction_read_only', 'off', false);
    PERFORM set_config('search_path', 'elsewhere', false);
    PERFORM pg_advisory_lock(7);
    RETURN 1;
END $$;
CREATE FUNCTION plainly() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.t VALUES (1);
    RETURN 1;
END $$;
CREATE VIEW freeing AS SELECT free() AS id;
CREATE VIEW writing AS SELECT plainly() AS id;
"""


@pytest.fixture
def bed(postgres_url: str) -> Iterator[Bed]:
    bed = Bed(postgres_url)
    bed.sql.execute(SETTINGS)
    yield bed
    bed.close()


def query(bed: Bed, sql: str) -> QueryRead:
    return QueryRead(query=sql, fields=bed.source.describe_query(sql))


def view(bed: Bed, name: str) -> KeyedRead:
    return bed.reading(name, sort_columns=("id",))


@pytest.mark.parametrize("setting", ["transaction_read_only", "default_transaction_read_only"])
@pytest.mark.parametrize("here", ["true", "false"])
def test_a_query_cannot_make_itself_writable(bed: Bed, setting: str, here: str) -> None:
    read = query(bed, f"SELECT write('{setting}', {here}) AS id")
    with pytest.raises(RefillError, match=r"read-only|read-write"):
        bed.rows(read, DAY)
    assert bed.sql.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_a_query_cannot_free_the_next_slice(bed: Bed) -> None:
    assert bed.rows(query(bed, "SELECT free() AS id"), DAY) == [{"id": 1}]
    with pytest.raises(RefillError, match="read-only"):
        bed.rows(query(bed, "SELECT public.plainly() AS id"), DAY)
    assert bed.sql.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_nothing_that_a_query_set_or_locked_is_left_in_the_session(bed: Bed) -> None:
    look = query(
        bed,
        "SELECT current_setting('search_path') AS path, "
        "current_setting('default_transaction_read_only') AS reads, "
        "current_setting('TimeZone') AS zone, pg_backend_pid() AS pid, "
        "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) "
        "AS locks",
    )
    (before,) = bed.rows(look, DAY)
    bed.rows(query(bed, "SELECT free() AS id"), DAY)
    (after,) = bed.rows(look, DAY)
    assert after == before  # on the same connection: the reset costs no new one
    assert before["reads"] == "on"
    assert before["zone"] == "UTC"


def test_a_view_cannot_free_the_next_slice_either(bed: Bed) -> None:
    bed.rows(view(bed, "freeing"), KeyRange())
    with pytest.raises(RefillError, match="read-only"):
        bed.rows(view(bed, "writing"), KeyRange())
    assert bed.sql.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_doctor_recommends_a_role_that_cannot_write(
    postgres: PostgresServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = postgres.create_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        for name in ("doctor_reads", "doctor_writes"):
            connection.execute(f"DROP ROLE IF EXISTS {name}")
            connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'secret'")
        connection.execute("GRANT SELECT ON t TO doctor_reads")
        connection.execute("GRANT SELECT, INSERT ON t TO doctor_writes")
    with running_server(tmp_path) as server, server.client() as api:
        for name in ("doctor_reads", "doctor_writes", "postgres"):
            as_role = url.replace("postgres:secret", f"{name}:secret")
            _made(api.post("/api/postgres_databases", json={"name": name, "url": as_role}))
    run(["doctor", "--home", str(tmp_path), "--json"])
    found = {each["name"]: each for each in json.loads(capsys.readouterr().out)["findings"]}
    assert found["Source doctor_reads"]["ok"] is True
    assert "may write tables" in found["Source doctor_writes"]["what"]
    assert "superuser" in found["Source postgres"]["what"]
    assert "only reads" in found["Source postgres"]["mend"]


def _made(response: httpx.Response) -> None:
    assert response.status_code == 201, response.text
