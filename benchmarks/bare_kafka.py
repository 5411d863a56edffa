"""The parts alone: ADBC → polars → produce_batch with transactions, in two bare processes."""

from datetime import UTC, datetime
from uuid import uuid4

from benchmarks.peers import Bench, warm_pool
from benchmarks.refill_server import postgres_fields

ROWS_PER_TRANSACTION = 250_000


def produce(bench: Bench, hosts: str, topic: str) -> int:
    step = ROWS_PER_TRANSACTION
    edges = [(first, min(first + step, bench.rows)) for first in range(0, bench.rows, step)]
    jobs = [(bench.url, hosts, topic, low, high) for low, high in edges]
    return sum(warm_pool().starmap(_produce_range, jobs, chunksize=1))


def _produce_range(url: str, hosts: str, topic: str, low: int, high: int) -> int:
    """One range of keys in one transaction, with its marker, in refill's own envelope."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    from refill.connectors.kit.contract import Context, Job
    from refill.connectors.kit.envelope import Envelope
    from refill.connectors.kit.registry import load_connectors
    from refill.domain.slice import KeyRange, Ticket
    from refill.domain.spec import KeyedRead, SinkSpec

    postgres = load_connectors()["postgres"]
    assert postgres.open_source is not None
    options = postgres.options_model.model_validate(postgres_fields(url))
    source = postgres.open_source(options, Context(team_id=1, files_root=""))
    table = source.find_table("public", "orders")
    assert table is not None
    spec = SinkSpec(
        database_id="d",
        database_type="postgres",
        database_name="bench",
        read=KeyedRead(
            table=table,
            columns=tuple(column.name for column in table.columns),
            sort_columns=("id",),
        ),
        sink_id=str(uuid4()),
        sink_type="kafka",
        sink_options={},
        message={
            "consumer": {"id": str(uuid4()), "name": "bench", "annotations": {}},
            "database": {"id": str(uuid4()), "name": "bench", "hostname": "127.0.0.1"},
        },
    )
    extent = KeyRange(lower=(str(low),), upper=(str(high),))
    job = Job(backfill_id=1, backfill_uid=str(uuid4()), spec=spec)
    ticket = Ticket(
        slice_id=1, index=0, extent=extent, attempt=1, target="t", fence=1, nonce=uuid4().hex
    )
    producer = Producer(
        {
            "bootstrap.servers": hosts,
            "transactional.id": f"bare-{uuid4()}",
            "compression.type": "lz4",
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": 200_000,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    rows = 0
    envelope = Envelope(job, ticket, source.schema(spec.read), lambda: datetime.now(UTC))
    for batch in source.read(spec.read, extent):
        for portion in envelope.portions(batch):
            messages = envelope.wrap(portion)
            assert messages.key is not None
            pairs = zip(messages.key, messages.values(), strict=True)
            handed = [{"key": key, "value": value} for key, value in pairs]
            while len(producer) > 50_000:
                producer.poll(0.01)
            producer.produce_batch(topic, handed)
            rows += len(handed)
    group = Consumer({"bootstrap.servers": hosts, "group.id": f"bare-{uuid4()}"})
    offset = TopicPartition(topic, 0, 1)
    producer.send_offsets_to_transaction([offset], group.consumer_group_metadata())
    producer.commit_transaction(60)
    group.close()
    source.close()
    return rows
