"""Messages that are a part of themselves, and where routing sends them: each system for itself."""

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import nats
import pika
import pyarrow as pa
import pytest
import redis
from confluent_kafka import Consumer

from refill.connectors.kafka import KafkaOptions
from refill.connectors.kafka.sink import KafkaSink
from refill.connectors.kit.contract import Context
from refill.connectors.nats import NatsOptions, NatsSink
from refill.connectors.rabbitmq import RabbitOptions
from refill.connectors.rabbitmq.sink import RabbitSink
from refill.connectors.redis.stream import RedisStreamOptions, RedisStreamSink
from refill.connectors.redis.string import RedisStringOptions, RedisStringSink
from refill.connectors.webhook import WebhookOptions
from refill.connectors.webhook.sink import WebhookSink
from refill.domain.errors import SinkRefused
from refill.domain.spec import ROUTE
from tests.integration.messages.orders import make_job, make_ticket
from tests.servers.kafka import KafkaServer
from tests.servers.nats import NatsServer
from tests.servers.rabbitmq import RabbitServer
from tests.servers.read_committed import read_committed
from tests.servers.receiver import Receiver, running_receiver
from tests.servers.redis import RedisServer


def routed(**routes: list[Any]) -> pa.RecordBatch:
    """Rows as the SQL lane hands them over, with where they go beside them."""
    rows = len(next(iter(routes.values())))
    columns: dict[str, Any] = {"id": list(range(rows)), "note": ["x"] * rows}
    columns |= {ROUTE + name: values for name, values in routes.items()}
    return pa.RecordBatch.from_pydict(columns)


def plain(rows: int = 2) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": list(range(rows)), "note": ["x"] * rows})


def write(sink: Any, batch: pa.RecordBatch, **spec: Any) -> None:
    try:
        sink.write(make_job(**spec), make_ticket(), batch.schema, iter([batch]))
    finally:
        sink.close()


def kafka_sink(kafka: KafkaServer, topic: str) -> KafkaSink:
    return KafkaSink(KafkaOptions.model_validate({"hosts": kafka.hosts, "topic": topic}))


def headers_in(kafka: KafkaServer, topic: str, wanted: int) -> list[dict[str, bytes]]:
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.hosts,
            "group.id": uuid4().hex,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    found: list[Any] = []
    while len(found) < wanted:
        message = consumer.poll(10)
        assert message is not None
        found.append(dict(message.headers() or []))
    consumer.close()
    return found


def test_kafka_gets_the_part_alone_with_its_key_and_idempotency_key(kafka: KafkaServer) -> None:
    topic = kafka.create_topic()
    write(kafka_sink(kafka, topic), plain(), message_path="record.note")
    messages = read_committed(kafka, topic)
    assert sorted((message.key, message.value) for message in messages) == [
        (b"0", b'"x"'),
        (b"1", b'"x"'),
    ]
    assert len({headers["idempotency-key"] for headers in headers_in(kafka, topic, 2)}) == 2


def test_kafka_keys_follow_the_group_columns(kafka: KafkaServer) -> None:
    topic = kafka.create_topic()
    write(kafka_sink(kafka, topic), plain(5), group_columns=("note",))
    messages = read_committed(kafka, topic)
    assert {message.key for message in messages} == {b"x"}
    assert len({message.partition for message in messages}) == 1
    pks = {json.loads(message.value)["metadata"]["record_pks"][0] for message in messages}
    assert pks == {"0", "1", "2", "3", "4"}


def test_kafka_takes_a_slice_of_several_topics_exactly_once(kafka: KafkaServer) -> None:
    own, first, second = (kafka.create_topic() for _ in range(3))
    batch = routed(topic=[first, second, None, first], key=["a", None, "c", "d"])
    job, sink = make_job(), kafka_sink(kafka, own)

    def broken() -> Iterator[pa.RecordBatch]:
        yield batch
        raise RuntimeError("the source went away")

    with pytest.raises(RuntimeError):
        sink.write(job, make_ticket(), batch.schema, broken())
    for attempt in (2, 3):
        sink.write(job, make_ticket(attempt=attempt), batch.schema, iter([batch]))
    sink.close()
    found = {
        topic: sorted(message.key for message in read_committed(kafka, topic))
        for topic in (own, first, second)
    }
    assert found == {own: [b"c"], first: [b"a", b"d"], second: [b"1"]}
    (message,) = read_committed(kafka, own)
    assert json.loads(message.value)["record"] == {"id": 2, "note": "x"}


def test_kafka_routing_can_give_headers(kafka: KafkaServer) -> None:
    topic = kafka.create_topic()
    write(kafka_sink(kafka, topic), routed(headers=[{"kind": "order", "n": 7}]))
    (headers,) = headers_in(kafka, topic, 1)
    assert (headers["kind"], headers["n"]) == (b"order", b"7")


def test_kafka_says_which_topic_of_the_routing_is_not_there(kafka: KafkaServer) -> None:
    missing = f"missing-{uuid4().hex[:8]}"
    with pytest.raises(SinkRefused, match=f"The topic '{missing}' of the routing"):
        write(kafka_sink(kafka, kafka.create_topic()), routed(topic=[missing]))


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator[redis.Redis]:
    with redis.Redis(redis_server.host, redis_server.port, db=901) as connection:
        connection.flushdb()
        yield connection


def place(redis_server: RedisServer) -> dict[str, Any]:
    return {"host": redis_server.host, "port": redis_server.port, "database": 901}


def test_redis_streams_follow_the_routing_and_take_a_part_alone(
    redis_server: RedisServer, client: redis.Redis
) -> None:
    sink = RedisStreamSink(RedisStreamOptions(**place(redis_server), stream_key="s"))
    write(sink, routed(stream=["a", None]), message_path="record")
    ((_, fields),) = client.xrange("a")
    assert json.loads(fields[b"message"]) == {"id": 0, "note": "x"}
    assert fields[b"idempotency_key"]
    assert client.xlen("s") == 1


def test_redis_strings_follow_the_routing(redis_server: RedisServer, client: redis.Redis) -> None:
    sink = RedisStringSink(RedisStringOptions(**place(redis_server)))
    write(sink, routed(key=["mine", None]), message_path="record.id")
    assert client.get("mine") == b"0"
    assert client.get("sequin:orders:1") == b"1"


def test_nats_subjects_and_headers_follow_the_routing(nats_server: NatsServer) -> None:
    prefix = uuid4().hex[:8]
    access = {"username": nats_server.username, "password": nats_server.password}
    place = {"host": nats_server.host, "port": nats_server.port}
    sink = NatsSink(NatsOptions.model_validate({**place, **access}))
    batch = routed(subject=[f"{prefix}.a", f"{prefix}.b"], headers=[{"kind": "x"}, None])

    async def listen() -> list[Any]:
        async with await nats.connect(nats_server.url) as connection:
            heard = await connection.subscribe(f"{prefix}.>")
            await connection.flush()
            await asyncio.to_thread(write, sink, batch, message_path="record.id")
            return [await heard.next_msg(timeout=5) for _ in range(2)]

    first, second = sorted(asyncio.run(listen()), key=lambda message: message.subject)
    assert (first.subject, first.data, first.headers["kind"]) == (f"{prefix}.a", b"0", "x")
    assert (second.subject, second.data) == (f"{prefix}.b", b"1")
    assert second.headers["Nats-Msg-Id"]


def test_a_routing_to_no_subject_is_a_refusal(nats_server: NatsServer) -> None:
    sink = NatsSink(
        NatsOptions.model_validate(
            {
                "host": nats_server.host,
                "port": nats_server.port,
                "username": nats_server.username,
                "password": nats_server.password,
            }
        )
    )
    with pytest.raises(SinkRefused, match="is no NATS subject"):
        write(sink, routed(subject=["a.*"]))


def test_rabbitmq_follows_the_routing(rabbitmq: RabbitServer) -> None:
    connection = pika.BlockingConnection(pika.ConnectionParameters(rabbitmq.host, rabbitmq.port))
    channel: Any = connection.channel()
    name, queue = uuid4().hex, uuid4().hex
    channel.exchange_declare(name, "direct")
    channel.queue_declare(queue)
    channel.queue_bind(queue, name, "mine")
    place = {"host": rabbitmq.host, "port": rabbitmq.port}
    sink = RabbitSink(RabbitOptions.model_validate({**place, "exchange": ""}))
    batch = routed(exchange=[name], routing_key=["mine"], headers=[{"kind": "x"}])
    write(sink, batch, message_path="metadata.table_name")
    method, properties, body = channel.basic_get(queue, auto_ack=True)
    assert (method.exchange, method.routing_key, body) == (name, "mine", b'"orders"')
    assert properties.headers == {"kind": "x"}
    assert properties.message_id
    connection.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as running:
        yield running


def webhook(receiver: Receiver, **more: Any) -> WebhookSink:
    options = WebhookOptions.model_validate({"url": f"{receiver.url}/v1", **more})
    context = Context(team_id=1, files_root="/nowhere", allow_private_hosts=True)
    return WebhookSink(options, context)


def test_a_webhooks_requests_follow_the_routing(receiver: Receiver) -> None:
    batch = routed(path=["a", "a", "b?x=1"], headers=[{"X-Kind": "k"}, {"X-Kind": "k"}, None])
    write(webhook(receiver, concurrency=1), batch, message_path="record.id")
    first, second = receiver.requests
    assert (first.path, first.headers["X-Kind"]) == ("/v1/a", "k")
    assert json.loads(first.body) == {"data": [0, 1]}
    assert (second.path, json.loads(second.body)) == ("/v1/b?x=1", {"data": [2]})
    assert first.headers["Idempotency-Key"] != second.headers["Idempotency-Key"]


def test_the_messages_of_a_group_reach_a_webhook_in_their_order(receiver: Receiver) -> None:
    """The first request takes longest: whoever did not wait for it would overtake it."""
    slow = iter([0.3, 0.2, 0.1])

    def answer(request: Any) -> Any:
        time.sleep(next(slow, 0.0))
        arrived.append(json.loads(request.body)["record"])
        return 200, {}

    arrived: list[dict[str, Any]] = []
    receiver.answer = answer
    rows = {"id": list(range(40)), "note": ["a", "b", "c", None] * 10}
    write(
        webhook(receiver, concurrency=4, batch=False),
        pa.RecordBatch.from_pydict(rows),
        group_columns=("note",),
    )
    for group in ("a", "b", "c", None):
        ids = [record["id"] for record in arrived if record["note"] == group]
        assert len(ids) == 10
        assert ids == sorted(ids)


@pytest.mark.parametrize(
    ("route", "said"),
    [
        ({"path": ["../admin"]}, "leads out of"),
        ({"method": ["CONNECT"]}, "is none of"),
        ({"headers": [{"Host": "elsewhere"}]}, "set by refill itself"),
        ({"headers": [{"X-A": "b\r\nX-C: d"}]}, "not one that can be sent"),
        ({"headers": ["no json"]}, "no JSON object"),
    ],
)
def test_a_routing_that_leads_astray_is_a_refusal(
    receiver: Receiver, route: dict[str, list[Any]], said: str
) -> None:
    with pytest.raises(SinkRefused, match=said):
        write(webhook(receiver), routed(**route))
    assert receiver.requests == []
