"""The same on Spark, against real servers: a task's process is ended where nothing else helps."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from refill.domain.errors import Stalled
from refill.domain.pipeline import Kind
from refill.domain.slice import Outcome
from refill.domain.spec import Spec
from refill.spark.engine import SparkEngine
from tests.integration.spark.assignments import make_assignment, make_ticket
from tests.servers.mute import Mute, mute_server
from tests.specs import build_spec, pg_column
from tests.waiting import until

pytestmark = pytest.mark.spark

SLEEPING = "SELECT pg_sleep(3600)::text AS id WHERE :date IS NOT NULL"


@pytest.fixture
def mute() -> Iterator[Mute]:
    with mute_server() as server:
        yield server


def options_of(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    return {
        "hostname": parts.hostname,
        "port": parts.port,
        "database": parts.path[1:],
        "username": parts.username,
        "password": parts.password,
    }


def query_spec() -> Spec:
    return build_spec(
        kind=Kind.TRANSFER,
        sink_type="sheets",
        query=SLEEPING,
        fields=(pg_column("id", "text", 25),),
    )


def test_a_query_that_sleeps_is_cancelled_at_the_source_and_fails_with_a_sentence(
    spark_engine: SparkEngine, tmp_path: Path, postgres_url: str
) -> None:
    (receipt,) = spark_engine.run(
        make_assignment(
            tmp_path,
            [make_ticket(1)],
            spec=query_spec(),
            source_type="postgres",
            source_options=options_of(postgres_url),
            stall_seconds=2.0,
        )
    )
    assert receipt.outcome is Outcome.FAILED
    assert receipt.fault is not None
    assert receipt.fault.code == "stalled"
    with psycopg.connect(postgres_url) as connection:
        until(lambda: not _sleepers(connection), "the end of the query", 10)


def test_a_server_that_says_nothing_costs_its_task_the_process_and_nobody_else(
    spark_engine: SparkEngine, tmp_path: Path, mute: Mute
) -> None:
    with pytest.raises(Stalled, match="made no progress"):
        spark_engine.run(
            make_assignment(
                tmp_path,
                [make_ticket(1)],
                spec=query_spec(),
                source_type="postgres",
                source_options=options_of(mute.url),
                stall_seconds=2.0,
            )
        )
    assert mute.greeted
    until(lambda: mute.gone >= mute.greeted, "the end of the connections", 10)
    (receipt,) = spark_engine.run(make_assignment(tmp_path, [make_ticket(1)]))
    assert receipt.outcome is Outcome.DONE


def _sleepers(connection: psycopg.Connection[Any]) -> int:
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(3600)%' "
        "AND state = 'active' AND pid <> pg_backend_pid() AND datname = current_database()"
    )
    found = connection.execute(query).fetchone()
    assert found is not None
    return int(found[0])
