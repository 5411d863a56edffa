"""Redis, NATS and RabbitMQ, beyond the contract: forms, limits, and what they refuse."""

import asyncio
import json
import socket
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import nats
import pika
import pyarrow as pa
import pytest
import redis
from nats.js import JetStreamContext
from nats.js.errors import ServiceUnavailableError

from refill.connectors.nats import NatsOptions, NatsSink
from refill.connectors.rabbitmq import RabbitOptions
from refill.connectors.rabbitmq.sink import RabbitSink
from refill.connectors.redis.stream import RedisStreamOptions, RedisStreamSink
from refill.connectors.redis.string import RedisStringOptions, RedisStringSink
from refill.domain.errors import SinkRefused, SinkUnavailable
from refill.domain.table import Table
from tests.integration.messages.orders import ORDERS, SCHEMA, make_job, make_ticket, rows_of
from tests.servers.nats import NatsServer
from tests.servers.rabbitmq import RabbitServer
from tests.servers.redis import RedisServer
from tests.specs import pg_column
from tests.waiting import until


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator[redis.Redis]:
    with redis.Redis(redis_server.host, redis_server.port, db=900) as connection:
        connection.flushdb()
        yield connection


def place(redis_server: RedisServer) -> dict[str, Any]:
    return {"host": redis_server.host, "port": redis_server.port, "database": 900}


def test_a_stream_entry_has_the_parts_of_the_message(
    redis_server: RedisServer, client: redis.Redis
) -> None:
    sink = RedisStreamSink(RedisStreamOptions(**place(redis_server), stream_key="s"))
    sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 1))
    ((_, fields),) = client.xrange("s")
    assert fields[b"action"] == b"read"
    assert fields[b"changes"] == b"null"
    assert json.loads(fields[b"record"]) == {"id": 0, "note": "x"}
    assert json.loads(fields[b"metadata"])["record_pks"] == ["0"]
    sink.close()


def test_strings_expire_when_told_to(redis_server: RedisServer, client: redis.Redis) -> None:
    sink = RedisStringSink(RedisStringOptions(**place(redis_server), expire_ms=60_000))
    sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 1))
    assert 0 < client.pttl("sequin:orders:0") <= 60_000
    sink.close()


def test_composite_keys_never_overwrite_each_other(
    redis_server: RedisServer, client: redis.Redis
) -> None:
    columns = tuple(pg_column(name=name, type="text", oid=25) for name in ("a", "b"))
    table = Table(schema_name="public", name="p", columns=columns, primary_key=("a", "b"))
    batch = pa.RecordBatch.from_pydict({"a": ["x-y", "x"], "b": ["z", "y-z"]})
    sink = RedisStringSink(RedisStringOptions(**place(redis_server)))
    sink.write(make_job(table=table), make_ticket(), batch.schema, iter([batch]))
    assert sorted(client.keys()) == [b"sequin:p:x-y\\-z", b"sequin:p:x\\-y-z"]
    sink.close()


def test_a_composite_key_is_joined_as_the_original_joins_it(
    redis_server: RedisServer, client: redis.Redis
) -> None:
    columns = (
        pg_column(name="a", type="uuid", oid=2950),
        pg_column(name="b", type="integer", oid=23),
    )
    table = Table(schema_name="public", name="p", columns=columns, primary_key=("a", "b"))
    uuid = "00000000-0000-4000-8000-000000000001"
    batch = pa.RecordBatch.from_pydict({"a": [uuid], "b": [-7]})
    sink = RedisStringSink(RedisStringOptions(**place(redis_server)))
    sink.write(make_job(table=table), make_ticket(), batch.schema, iter([batch]))
    assert client.keys() == [f"sequin:p:{uuid}--7".encode()]
    sink.close()


def test_strings_need_a_key(redis_server: RedisServer) -> None:
    keyless = ORDERS.model_copy(update={"primary_key": ()})
    sink = RedisStringSink(RedisStringOptions(**place(redis_server)))
    with pytest.raises(SinkRefused, match="no primary key"):
        sink.write(make_job(table=keyless), make_ticket(), SCHEMA, rows_of(0, 1))
    sink.close()


def test_a_key_of_another_kind_is_a_refusal(redis_server: RedisServer, client: redis.Redis) -> None:
    client.set("taken", "1")
    sink = RedisStreamSink(RedisStreamOptions(**place(redis_server), stream_key="taken"))
    with pytest.raises(SinkRefused, match="WRONGTYPE"):
        sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 1))
    sink.close()


def test_replicas_that_are_away_are_worth_another_try(
    redis_server: RedisServer, client: redis.Redis
) -> None:
    sink = RedisStreamSink(RedisStreamOptions(**place(redis_server), stream_key="s"))
    client.config_set("min-replicas-to-write", 1)
    try:
        with pytest.raises(SinkUnavailable, match="could not be used: NOREPLICAS"):
            sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 1))
    finally:
        client.config_set("min-replicas-to-write", 0)
        sink.close()


def nats_options(server: NatsServer, **more: Any) -> NatsOptions:
    access = {"username": server.username, "password": server.password}
    return NatsOptions.model_validate({"host": server.host, "port": server.port, **access, **more})


def test_jetstream_can_be_insisted_on(nats_server: NatsServer) -> None:
    sink = NatsSink(nats_options(nats_server, jetstream=True))
    with pytest.raises(SinkRefused, match=r"No JetStream stream takes .*sequin\.shop"):
        sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 1))
    sink.close()


def test_a_message_over_the_servers_limit_is_rejected(nats_server: NatsServer) -> None:
    batch = pa.RecordBatch.from_pydict({"id": [1, 2], "note": ["x", "x" * 300_000]}, schema=SCHEMA)
    sink = NatsSink(nats_options(nats_server))
    written = sink.write(make_job(), make_ticket(), SCHEMA, iter([batch]))
    assert (written.rows_delivered, written.rows_rejected) == (1, 1)
    assert written.rejects[0].key == ("2",)
    sink.close()


def test_jetstream_takes_a_slice_larger_than_its_window(nats_server: NatsServer) -> None:
    name = f"s{uuid4().hex[:8]}"
    job = make_job(database_name=name)

    async def make() -> None:
        async with await nats.connect(nats_server.url) as connection:
            await connection.jetstream().add_stream(name=name, subjects=[f"sequin.{name}.>"])

    async def count() -> int:
        async with await nats.connect(nats_server.url) as connection:
            return (await connection.jetstream().stream_info(name)).state.messages

    asyncio.run(make())
    sink = NatsSink(nats_options(nats_server))
    for attempt in (1, 2):
        sink.write(job, make_ticket(attempt=attempt), SCHEMA, rows_of(0, 2000))
    sink.close()
    assert asyncio.run(count()) == 2000


def test_a_connection_lost_between_two_batches_fails_the_slice(nats_server: NatsServer) -> None:
    """A new one would be flushed in its place, and what the old one held would be missing."""
    sink = NatsSink(nats_options(nats_server, jetstream=False))

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows_of(0, 1000)
        assert sink._client is not None
        writer: Any = sink._client._transport._io_writer  # type: ignore[union-attr]
        writer.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        yield from rows_of(1, 1000)

    with pytest.raises(SinkUnavailable):
        sink.write(make_job(), make_ticket(), SCHEMA, batches())
    written = sink.write(make_job(), make_ticket(attempt=2), SCHEMA, rows_of(0, 1000))
    assert written.rows_delivered == 1000
    sink.close()


def test_a_stream_that_has_no_leader_just_now_is_not_taken_for_none(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's answer is made up: an election takes a cluster, and lasts a moment."""

    async def no_leader(self: object, subject: str) -> str:
        raise ServiceUnavailableError(code=503, description="no leader")

    monkeypatch.setattr(JetStreamContext, "find_stream_name_by_subject", no_leader)
    sink = NatsSink(nats_options(nats_server))
    with pytest.raises(SinkUnavailable):
        sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 1))
    sink.close()


@pytest.fixture
def channel(rabbitmq: RabbitServer) -> Iterator[Any]:
    connection = pika.BlockingConnection(pika.ConnectionParameters(rabbitmq.host, rabbitmq.port))
    yield connection.channel()
    connection.close()


def test_messages_that_no_queue_takes_are_a_refusal(rabbitmq: RabbitServer, channel: Any) -> None:
    name = uuid4().hex
    channel.exchange_declare(name, "topic")
    sink = RabbitSink(RabbitOptions(host=rabbitmq.host, port=rabbitmq.port, exchange=name))
    with pytest.raises(SinkRefused, match="to no queue; bind one"):
        sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 1))
    sink.close()


def test_a_refusal_between_two_batches_is_not_forgotten(
    rabbitmq: RabbitServer, channel: Any
) -> None:
    name = uuid4().hex
    channel.exchange_declare(name, "topic")
    sink = RabbitSink(RabbitOptions(host=rabbitmq.host, port=rabbitmq.port, exchange=name))

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows_of(0, 10)
        assert sink._channel is not None
        until(lambda: sink._channel and not sink._channel.is_open, "the broker's answer", 10)

    with pytest.raises(SinkRefused, match="to no queue; bind one"):
        sink.write(make_job(), make_ticket(), SCHEMA, batches())
    sink.close()


def test_messages_are_persistent_and_carry_their_key(rabbitmq: RabbitServer, channel: Any) -> None:
    name = uuid4().hex
    channel.exchange_declare(name, "topic")
    channel.queue_declare(name)
    channel.queue_bind(name, name, "sequin.#")
    options = RabbitOptions(
        host=rabbitmq.host, port=rabbitmq.port, exchange=name, headers={"origin": "refill"}
    )
    sink = RabbitSink(options)
    sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 5000))
    sink.close()
    method, properties, body = channel.basic_get(name, auto_ack=True)
    message = json.loads(body)
    assert method.message_count == 4999
    assert method.routing_key == "sequin.shop.public.orders.read"
    assert properties.delivery_mode == 2
    assert properties.message_id == message["metadata"]["idempotency_key"]
    assert properties.headers == {"origin": "refill"}


def test_a_wrong_password_is_a_refusal(rabbitmq: RabbitServer) -> None:
    options = RabbitOptions(
        host=rabbitmq.host, port=rabbitmq.port, exchange="", username="guest", password="wrong"
    )
    sink = RabbitSink(options)
    with pytest.raises(SinkRefused, match="refused us"):
        sink.test()
    sink.close()
