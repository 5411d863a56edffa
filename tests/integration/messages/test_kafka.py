"""Kafka, beyond the contract: exactly once through crashes and restarts, access, limits."""

import json
import multiprocessing
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from refill.connectors.kafka import KafkaOptions
from refill.connectors.kafka.sink import QUEUED_ROWS, KafkaSink
from refill.connectors.kit.contract import Context, Job, Sink
from refill.connectors.kit.registry import load_connectors
from refill.domain.errors import SinkRefused, SinkUnavailable, Superseded, TooManyRejects
from refill.domain.slice import Ticket
from tests.integration.messages.orders import SCHEMA, make_job, make_ticket, rows_of
from tests.servers.kafka import KafkaServer
from tests.servers.read_committed import read_committed
from tests.waiting import until


def open_sink(kafka: KafkaServer, topic: str, **more: Any) -> KafkaSink:
    return KafkaSink(KafkaOptions.model_validate({"hosts": kafka.hosts, "topic": topic, **more}))


def count_keys(kafka: KafkaServer, topic: str) -> Counter[int]:
    messages = read_committed(kafka, topic)
    return Counter(json.loads(message.value)["record"]["id"] for message in messages)


def assert_each_once(kafka: KafkaServer, topic: str, rows: int) -> None:
    counts = count_keys(kafka, topic)
    assert len(counts) == rows
    assert set(counts.values()) == {1}


def groups_of(kafka: KafkaServer, job: Job) -> list[str]:
    admin = AdminClient({"bootstrap.servers": kafka.hosts})
    listed = admin.list_consumer_groups().result(20)
    return [group.group_id for group in listed.valid if job.backfill_uid in group.group_id]


def test_the_message_key_is_the_primary_key_and_equal_keys_meet(kafka: KafkaServer) -> None:
    topic = kafka.create_topic()
    sink = open_sink(kafka, topic)
    for backfill in (1, 2):
        sink.write(make_job(backfill), make_ticket(), SCHEMA, rows_of(0, 50))
    partitions: dict[bytes, set[int]] = {}
    for message in read_committed(kafka, topic):
        assert message.key == str(json.loads(message.value)["record"]["id"]).encode()
        partitions.setdefault(message.key, set()).add(message.partition)
    assert len(partitions) == 50
    assert {len(places) for places in partitions.values()} == {1}
    sink.close()


def test_markers_are_found_until_the_last_step_deletes_them(kafka: KafkaServer) -> None:
    job, topic = make_job(), kafka.create_topic()
    sink = open_sink(kafka, topic)
    written = sink.write(job, make_ticket(0), SCHEMA, rows_of(0, 10))
    found = sink.delivered(job, [make_ticket(0), make_ticket(1)])
    assert found[0] is not None
    assert found[0].delivered_before
    assert (found[0].rows_delivered, found[0].bytes_written) == (10, written.bytes_written)
    assert found[1] is None
    deadline = time.monotonic() + 10
    while len(groups_of(kafka, job)) != 1:
        assert time.monotonic() < deadline
    sink.seal(job)
    assert groups_of(kafka, job) == [f"refill-sealed-{job.backfill_uid}"]
    sink.close()


def test_an_attempt_that_slept_through_the_end_delivers_nothing(kafka: KafkaServer) -> None:
    """Its marker is gone with the backfill; that it is over is not forgotten."""
    job, topic = make_job(), kafka.create_topic()
    sink = open_sink(kafka, topic)
    sink.write(job, make_ticket(attempt=2), SCHEMA, rows_of(0, 10))
    sink.seal(job)
    with pytest.raises(Superseded, match="is over"):
        sink.write(job, make_ticket(attempt=1), SCHEMA, rows_of(0, 10))
    assert_each_once(kafka, topic, 10)
    sink.close()


def test_a_slice_whose_marker_stands_is_not_read_again(kafka: KafkaServer) -> None:
    job, topic = make_job(), kafka.create_topic()
    sink = open_sink(kafka, topic)
    sink.write(job, make_ticket(attempt=1), SCHEMA, rows_of(0, 10))

    def untouched() -> Iterator[pa.RecordBatch]:
        raise AssertionError("the source was read")
        yield

    again = sink.write(job, make_ticket(attempt=2), SCHEMA, untouched())
    assert again.delivered_before
    assert again.rows_delivered == 10
    assert_each_once(kafka, topic, 10)
    sink.close()


@pytest.mark.timeout(240)
def test_processes_killed_at_random_deliver_each_row_once(kafka: KafkaServer) -> None:
    """Killed before the first row, somewhere among them, and after the commit."""
    job, topic = make_job(), kafka.create_topic()
    dice = random.Random(7)
    rows, batches = 2000, 10
    context = multiprocessing.get_context("spawn")
    deaths = [[0, dice.randrange(1, batches)], [dice.randrange(1, batches), batches]]
    for index, kills in enumerate(deaths):
        for attempt, kill_at in enumerate([*kills, None], start=1):
            order = (kafka.hosts, topic, job, make_ticket(index, attempt), rows, kill_at)
            process = context.Process(target=deliver_and_die, args=order)
            process.start()
            process.join(60)
            assert process.exitcode == (0 if kill_at is None else -signal.SIGKILL)
    assert_each_once(kafka, topic, len(deaths) * rows)


def deliver_and_die(
    hosts: str, topic: str, job: Job, ticket: Ticket, rows: int, kill_at: int | None
) -> None:
    connector = load_connectors()["kafka"]
    assert connector.open_sink is not None
    options = KafkaOptions(hosts=hosts, topic=topic)
    sink: Sink = connector.open_sink(options, Context(team_id=1, files_root="/nowhere"))

    def deadly() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(rows_of(ticket.index, rows, batch=200)):
            if number == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    sink.write(job, ticket, SCHEMA, deadly())
    if kill_at is not None:
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_broker_killed_mid_transaction_loses_and_repeats_nothing(kafka: KafkaServer) -> None:
    job, topic = make_job(), kafka.create_topic()
    sink = open_sink(kafka, topic)

    def interrupted() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(rows_of(0, 5000, batch=1000)):
            yield batch
            if number == 2:
                kafka.kill()
                kafka.start()

    attempt = 0
    for attempt in range(1, 6):
        try:
            batches = interrupted() if attempt == 1 else rows_of(0, 5000, batch=1000)
            sink.write(job, make_ticket(attempt=attempt), SCHEMA, batches)
            break
        except SinkUnavailable:
            sink.close()
    else:
        pytest.fail("the slice was never delivered")
    assert_each_once(kafka, topic, 5000)
    sink.close()


def test_a_sink_that_idled_through_a_restart_is_of_use_at_once(kafka: KafkaServer) -> None:
    """What its client heard while the broker was away says nothing of now."""
    topic = kafka.create_topic()
    sink = open_sink(kafka, topic)
    sink.test()
    kafka.kill()
    kafka.start()
    sink.test()
    sink.close()


def test_a_broker_that_does_not_answer_holds_the_reader_back(kafka: KafkaServer) -> None:
    job, topic = make_job(), kafka.create_topic()
    sink = open_sink(kafka, topic)
    taken, stuck = 0, threading.Event()
    batch = next(rows_of(0, 2000, batch=2000))

    def endless() -> Iterator[pa.RecordBatch]:
        nonlocal taken
        while not stuck.is_set():
            taken += batch.num_rows
            yield batch

    def write() -> None:
        sink.write(job, make_ticket(), SCHEMA, endless())

    writer = threading.Thread(target=write)
    writer.start()
    until(lambda: taken >= 10_000 or not writer.is_alive(), "the first rows", 60, 0.01)
    assert writer.is_alive()
    with kafka.frozen():
        before, unchanged_since = -1, time.monotonic()
        at_freeze = taken
        while time.monotonic() - unchanged_since < 1.0:
            if taken != before:
                before, unchanged_since = taken, time.monotonic()
            time.sleep(0.02)
        assert taken - at_freeze <= 2 * QUEUED_ROWS + 20_000
        stuck.set()
    writer.join(60)
    assert not writer.is_alive()
    sink.close()


def test_a_message_over_the_topics_limit_is_rejected_and_named(kafka: KafkaServer) -> None:
    topic = kafka.create_topic(**{"max.message.bytes": "20000"})
    sink = open_sink(kafka, topic)
    sizes = [10, 30_000, 10]
    batch = pa.RecordBatch.from_pydict(
        {"id": [1, 2, 3], "note": ["x" * size for size in sizes]}, schema=SCHEMA
    )
    with pytest.raises(TooManyRejects, match="keys 2") as met:
        sink.write(make_job(1), make_ticket(), SCHEMA, iter([batch]))
    assert [reject.key for reject in met.value.rejects] == [("2",)]
    assert count_keys(kafka, topic) == {}
    lenient = make_job(2, max_rejects=1)
    written = sink.write(lenient, make_ticket(), SCHEMA, iter([batch]))
    assert (written.rows_delivered, written.rows_rejected) == (2, 1)
    assert written.rejects[0].key == ("2",)
    assert count_keys(kafka, topic) == {1: 1, 3: 1}
    again = sink.write(lenient, make_ticket(attempt=2), SCHEMA, iter([batch]))
    assert again.rejects == written.rejects
    sink.close()


def test_a_broker_that_refuses_mid_slice_says_why_and_shows_nothing(kafka: KafkaServer) -> None:
    """The limit is lowered behind our back: the broker refuses what the sink believed to fit."""
    topic = kafka.create_topic()
    sink = open_sink(kafka, topic, compression="none")
    sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 1))
    resource = ConfigResource(ResourceType.TOPIC, topic)
    lower = ConfigEntry("max.message.bytes", "2000", incremental_operation=AlterConfigOpType.SET)
    resource.add_incremental_config(lower)
    kafka.admin.incremental_alter_configs([resource])[resource].result(20)
    rows = rows_of(1, 20_000, batch=2000, note="y" * 5000)
    with pytest.raises(SinkRefused, match="too large"):
        sink.write(make_job(), make_ticket(), SCHEMA, rows)
    assert count_keys(kafka, topic) == {0: 1}
    sink.close()


def test_many_small_messages_stay_below_a_small_limit_of_the_topic(kafka: KafkaServer) -> None:
    topic = kafka.create_topic(**{"max.message.bytes": "5000"})
    sink = open_sink(kafka, topic, compression="none")
    sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 500))
    assert_each_once(kafka, topic, 500)
    sink.close()


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_arrives(kafka: KafkaServer, compression: str) -> None:
    topic = kafka.create_topic()
    sink = open_sink(kafka, topic, compression=compression)
    sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 20))
    assert_each_once(kafka, topic, 20)
    sink.close()


@pytest.mark.parametrize(
    ("username", "mechanism"),
    [("plain", "plain"), ("scram", "SCRAM-SHA-256"), ("scram512", "scram_sha_512")],
)
def test_sasl_lets_in_who_knows_the_password(
    kafka: KafkaServer, username: str, mechanism: str
) -> None:
    topic = kafka.create_topic()
    access = {"hosts": kafka.sasl_hosts, "username": username, "sasl_mechanism": mechanism}
    sink = open_sink(kafka, topic, **access, password="secret")
    sink.test()
    sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 5))
    assert_each_once(kafka, topic, 5)
    sink.close()
    wrong = open_sink(kafka, topic, **access, password="wrong")
    with pytest.raises(SinkRefused, match="refused us"):
        wrong.test()
    wrong.close()


def test_tls_checks_who_the_broker_is(kafka: KafkaServer) -> None:
    topic = kafka.create_topic()
    sink = open_sink(kafka, topic, hosts=kafka.tls_hosts, tls=True, ca_certificate=kafka.authority)
    sink.test()
    sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 5))
    assert_each_once(kafka, topic, 5)
    sink.close()
    stranger = open_sink(kafka, topic, hosts=kafka.tls_hosts, tls=True)
    with pytest.raises(SinkRefused, match="certificate"):
        stranger.test()
    stranger.close()


def test_a_topic_that_is_not_there_is_named(kafka: KafkaServer) -> None:
    sink = open_sink(kafka, "no-such-topic")
    with pytest.raises(SinkRefused, match="no topic 'no-such-topic'; create it"):
        sink.test()
    sink.close()
