"""A table to Kafka by `refill serve`: a read-committed consumer counts every key once, whatever
happens meanwhile. `REFILL_KAFKA_ROWS=1000000` makes it a big table, and `REFILL_KAFKA_KILLS=5` a
hard life for the worker: most of the test's time is Spark starting anew."""

import os
import random
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.acceptance.serving import Serving
from tests.servers.kafka import KafkaServer
from tests.servers.postgres import PostgresServer
from tests.servers.read_committed import count_committed
from tests.waiting import until

ROWS = int(os.environ.get("REFILL_KAFKA_ROWS", "40000"))
KILLS = int(os.environ.get("REFILL_KAFKA_KILLS", "2"))
END_SECONDS = 300 + ROWS / 5000
EVERY_SECONDS = 0.2  # a key has so many requests an hour
pytestmark = [pytest.mark.spark, pytest.mark.postgres, pytest.mark.timeout(900 + ROWS // 1000)]


@pytest.fixture(scope="module")
def serving(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Serving]:
    url = postgres.create_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE orders AS SELECT n::bigint AS id, md5(n::text) AS note,"
            " (n % 997)::numeric(12,2) / 7 AS amount, jsonb_build_object('n', n) AS details"
            f" FROM generate_series(1, {ROWS}) AS n"
        )
        connection.execute("ALTER TABLE orders ADD PRIMARY KEY (id)")
        connection.execute("ANALYZE")
    server = Serving(tmp_path_factory.mktemp("kafka") / "home", REFILL_LEASE_SECONDS="5")
    try:
        server.start()
        parts = urlsplit(url)
        address = {"hostname": parts.hostname, "port": parts.port, "ssl": False}
        access = {"username": parts.username, "password": parts.password}
        database = {"name": "shop", "database": parts.path.lstrip("/"), **address, **access}
        server.ask("POST", "/api/postgres_databases", database)
        yield server
    finally:
        server.close()


class Delivery:
    """One backfill of the table into a topic of its own."""

    def __init__(self, serving: Serving, kafka: KafkaServer, **body: Any) -> None:
        self._serving = serving
        self._kafka = kafka
        self._topic = kafka.create_topic()
        sink = {
            "name": self._topic,
            "database": "shop",
            "source": {"include_tables": ["public.orders"]},
            "destination": {"type": "kafka", "hosts": kafka.hosts, "topic": self._topic},
        }
        serving.ask("POST", "/api/sinks", sink)
        path = f"/api/sinks/{self._topic}/backfills"
        made = serving.ask("POST", path, {"table": "public.orders", **body})
        self.id = made["id"]
        self._path = f"{path}/{self.id}"

    def look(self) -> Any:
        return self._serving.ask("GET", self._path)

    def slices_completed(self) -> int:
        return int(self.look()["slices"]["completed"])

    def slices(self) -> list[Any]:
        return list(self._serving.ask("GET", f"{self._path}/slices")["data"])

    def wait_running(self, completed: int) -> None:
        """Until so many slices are done and another one runs."""

        def in_the_middle() -> bool:
            found = self.look()
            assert found["state"] == "active", found["error"]
            slices = found["slices"]
            return bool(slices["completed"] >= completed and slices["running"])

        until(in_the_middle, f"slice {completed} in the middle", END_SECONDS, EVERY_SECONDS)

    def assert_each_key_once(self) -> None:
        """And what is reported is what a consumer finds."""
        ended = until(self._ended, "the end", END_SECONDS, EVERY_SECONDS)
        assert (ended["state"], ended["error"]) == ("completed", None)
        counts = count_committed(self._kafka, self._topic, END_SECONDS)
        assert set(counts.values()) == {1}
        assert counts.keys() == {str(number).encode() for number in range(1, ROWS + 1)}
        assert ended["rows_processed_count"] == ended["rows_ingested_count"] == ROWS
        assert sum(each["rows_delivered"] for each in self.slices()) == ROWS
        listed = self._kafka.admin.list_consumer_groups().result(20).valid
        left = [group.group_id for group in listed if self.id in group.group_id]
        assert left == [f"refill-sealed-{self.id}"]

    def _ended(self) -> Any:
        found = self.look()
        return found if found["state"] != "active" else None


def wait_for(seconds: float) -> None:
    """A moment that dice have chosen."""
    moment = time.monotonic() + seconds
    until(lambda: time.monotonic() >= moment, "that moment", seconds + 30)


def test_a_clean_run_delivers_each_key_once(serving: Serving, kafka: KafkaServer) -> None:
    Delivery(serving, kafka).assert_each_key_once()


def test_a_worker_killed_again_and_again_delivers_each_key_once(
    serving: Serving, kafka: KafkaServer
) -> None:
    dice = random.Random(5)
    # eight slices of five seconds each: slow enough that every kill comes in the middle
    delivery = Delivery(serving, kafka, max_rows_per_second=ROWS // 40)
    completed = -1
    for moment in sorted(dice.sample(range(7), KILLS)):
        # with some progress between them: a slice that five workers died of is given up
        delivery.wait_running(max(moment, completed + 1))
        completed = delivery.slices_completed()
        wait_for(dice.uniform(0.0, 4.0))
        assert delivery.look()["state"] == "active"
        serving.kill_worker()
    delivery.assert_each_key_once()
    assert max(each["attempt"] for each in delivery.slices()) > 1


def test_a_broker_restarted_in_the_middle_delivers_each_key_once(
    serving: Serving, kafka: KafkaServer
) -> None:
    dice = random.Random(6)
    delivery = Delivery(serving, kafka, max_rows_per_second=ROWS // 20)
    delivery.wait_running(1)
    wait_for(dice.uniform(0.5, 3.5))
    assert delivery.look()["state"] == "active"
    kafka.kill()
    kafka.start()
    delivery.assert_each_key_once()
