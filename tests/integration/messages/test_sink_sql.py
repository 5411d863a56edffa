"""What a sink says in SQL, from a real table through both lanes to a real Redis."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from refill.connectors.kit.registry import load_connectors
from refill.domain.slice import Receipt
from refill.domain.spec import ENRICHMENT
from refill.service.sink_sql import frozen_sql
from refill.spark.engine import SparkEngine
from tests.contract.store.factories import make_sink
from tests.integration.fidelity.moving import Mover
from tests.integration.postgres_source.conftest import Bed
from tests.servers.redis import RedisServer

_SETUP = """
CREATE TABLE orders (id int PRIMARY KEY, region text, amount numeric(12,2), details jsonb,
                     tags text[]);
INSERT INTO orders VALUES
    (1, 'eu', 5, '{"kind": "a", "n": 1}', '{x,y}'), (2, 'us', 20.5, '{"kind": "b"}', NULL),
    (3, 'eu', 30, NULL, '{}'), (4, NULL, NULL, '{"kind": "a", "n": 12}', '{z}');
CREATE SEQUENCE counting;
CREATE TABLE customers (id int PRIMARY KEY, name text, since timestamptz, credit numeric);
INSERT INTO customers VALUES (1, 'Ann "A"', '2024-01-01 00:00:00+00', 1.50), (3, 'Cy', NULL, NULL);
"""


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator[redis.Redis]:
    with redis.Redis(redis_server.host, redis_server.port, db=902) as connection:
        connection.flushdb()
        yield connection


class Moved:
    """Moves the orders to Redis as a sink with these fields would."""

    def __init__(self, bed: Bed, engine: SparkEngine, server: RedisServer, root: Path) -> None:
        bed.sql.execute(_SETUP)
        self._mover = Mover(engine, load_connectors(), bed.url, root)
        self._place = {"host": server.host, "port": server.port, "database": 902}

    def move(self, sink_type: str = "redis_string", **fields: Any) -> list[Receipt]:
        table = self._mover.source.find_table("public", "orders")
        assert table is not None
        options = self._place | ({"stream_key": "own"} if sink_type == "redis_stream" else {})
        frozen = frozen_sql(make_sink("d", filter=(), tables=(), **fields), table)
        self.lane = "fused" if frozen["transform"] is None else "sql"
        return self._mover.move(table, sink_type, options, numeric_format="string", **frozen)


@pytest.fixture
def moved(bed: Bed, spark_engine: SparkEngine, redis_server: RedisServer, tmp_path: Path) -> Moved:
    return Moved(bed, spark_engine, redis_server, tmp_path)


def sent(client: redis.Redis) -> dict[int, Any]:
    found = {}
    for key in client.keys("sequin:orders:*"):
        value: Any = client.get(key)
        found[int(key.decode().rpartition(":")[2])] = json.loads(value)
    return found


def test_the_sql_makes_the_whole_message(moved: Moved, client: redis.Redis) -> None:
    sql = "select id, named_struct('n', id, 'tags', tags, 'cost', amount) as message from source"
    moved.move(transform=sql)
    assert sent(client)[2] == {"n": 2, "tags": None, "cost": "20.50"}
    moved.move(transform="select id, to_json(struct(region)) as message from source")
    assert sent(client)[2] == {"region": "us"}
    moved.move(transform="select id, details as message from source")
    assert sent(client)[2] == {"kind": "b"}


def test_sql_that_names_no_message_changes_the_record_alone(
    moved: Moved, client: redis.Redis
) -> None:
    moved.move(transform="select id, upper(region) as region, tags from source")
    assert sent(client)[1]["record"] == {"id": 1, "region": "EU", "tags": ["x", "y"]}
    assert sent(client)[1]["metadata"]["record_pks"] == ["1"]


def test_a_path_is_sent_alone(moved: Moved, client: redis.Redis) -> None:
    moved.move(message_path="record.details")
    assert moved.lane == "fused"
    assert sent(client) == {
        1: {"kind": "a", "n": 1},
        2: {"kind": "b"},
        3: None,
        4: {"kind": "a", "n": 12},
    }
    moved.move(message_path="record.id")
    assert sent(client) == {1: 1, 2: 2, 3: 3, 4: 4}
    moved.move(message_path="metadata.table_name")
    assert set(sent(client).values()) == {"orders"}


def test_routing_by_sql_chooses_the_stream(moved: Moved, client: redis.Redis) -> None:
    receipts = moved.move(
        "redis_stream",
        routing="select concat('orders-', region) as stream from source",
        filter_sql="id < 4 or lower(region) = 'eu'",
    )
    assert moved.lane == "sql"
    assert sum(receipt.rows_delivered for receipt in receipts) == 3
    assert sum(receipt.rows_filtered for receipt in receipts) == 1
    assert (client.xlen("orders-eu"), client.xlen("orders-us"), client.xlen("own")) == (2, 1, 0)
    ((_, entry),) = client.xrange("orders-us")
    assert list(json.loads(entry[b"record"])) == ["id", "region", "amount", "details", "tags"]


@pytest.mark.parametrize(
    ("condition", "lane", "kept"),
    [
        ("amount > 10", "fused", {2, 3}),
        ("amount >= 5 and region = 'eu'", "fused", {1, 3}),
        ("details ->> 'kind' = 'a'", "fused", {1, 4}),
        ("region is not null and id <> 2", "fused", {1, 3}),
        ("amount > 10 or details ->> 'kind' = 'a'", "sql", {1, 2, 3, 4}),
        ("get_json_object(details, '$.n') > 5", "sql", {4}),
        ("length(region) = 2 and amount * 2 > 50", "sql", {3}),
    ],
)
def test_a_filter_may_be_a_condition_in_sql(
    moved: Moved, client: redis.Redis, condition: str, lane: str, kept: set[int]
) -> None:
    moved.move(filter_sql=condition)
    assert moved.lane == lane
    assert set(sent(client)) == kept


def test_enrichment_is_looked_up_by_key_and_joined(moved: Moved, client: redis.Redis) -> None:
    query = "select id, name, since, credit from customers where id = any(:keys)"
    ann = {"id": 1, "name": 'Ann "A"', "since": "2024-01-01T00:00:00.000000Z", "credit": "1.50"}
    cy = {"id": 3, "name": "Cy", "since": None, "credit": None}
    for transform in (None, "select id, region from source"):
        client.flushdb()
        moved.move(enrichment=query, transform=transform)
        found = {key: message["metadata"]["enrichment"] for key, message in sent(client).items()}
        assert found == {1: ann, 2: None, 3: cy, 4: None}
        assert ENRICHMENT not in sent(client)[1]["record"]


def test_an_enrichment_that_writes_or_fails_says_so(moved: Moved) -> None:
    with pytest.raises(AssertionError, match="enrichment: PostgreSQL says: operator does not"):
        moved.move(enrichment="select id, name / 0 as x from customers where id = any(:keys)")
    with pytest.raises(AssertionError, match="division by zero"):
        moved.move(enrichment="select id, id / 0 as x from customers where id = any(:keys)")
    with pytest.raises(AssertionError, match="read-only transaction"):
        moved.move(enrichment="select id, nextval('counting') from customers where id = any(:keys)")
    with pytest.raises(AssertionError, match="must select id"):
        moved.move(enrichment="select name from customers where id = any(:keys)")


def test_a_filter_on_what_is_inside_json_reads_texts_and_numbers(
    moved: Moved, client: redis.Redis
) -> None:
    table = moved._mover.source.find_table("public", "orders")
    assert table is not None
    for operator, value, kept in [
        ("=", "a", {1, 4}),
        ("!=", "a", {2}),
        ("in", ["b", "c"], {2}),
        ("is null", None, {3}),
    ]:
        client.flushdb()
        one = {"column_name": "details", "operator": operator, "comparison_value": value}
        sink = make_sink("d", filter=(one | {"field_path": "kind"},), tables=())
        moved._mover.move(table, "redis_string", moved._place, **frozen_sql(sink, table))
        assert set(sent(client)) == kept
    client.flushdb()
    one = {"column_name": "details", "operator": ">", "comparison_value": 5, "field_path": "n"}
    sink = make_sink("d", filter=(one,), tables=())
    moved._mover.move(table, "redis_string", moved._place, **frozen_sql(sink, table))
    assert set(sent(client)) == {4}
