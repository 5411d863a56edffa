"""Debezium's initial snapshot in Kafka Connect standalone: what people use today for this.

At least once, JSON without schemas, lz4, batches tuned; its jars come from Maven Central.
"""

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import Pass, busy_seconds
from benchmarks.peers import Bench
from benchmarks.refill_server import postgres_fields
from benchmarks.source import CACHE
from tests.servers.kafka import VERSION, KafkaServer
from tests.servers.postgres import free_port

DEBEZIUM = "3.3.1.Final"
JARS = CACHE / "debezium" / DEBEZIUM

POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>refill</groupId><artifactId>debezium-for-benchmarks</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>connect-runtime</artifactId>
<version>{VERSION}</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>connect-json</artifactId>
<version>{VERSION}</version></dependency>
<dependency><groupId>io.debezium</groupId><artifactId>debezium-connector-postgres</artifactId>
<version>{DEBEZIUM}</version></dependency>
</dependencies></project>
"""

WORKER = """bootstrap.servers={hosts}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=false
value.converter.schemas.enable=false
offset.storage.file.filename={folder}/offsets
offset.flush.interval.ms=10000
listeners=http://127.0.0.1:{rest}
producer.compression.type=lz4
producer.batch.size=1000000
producer.linger.ms=20
producer.buffer.memory=134217728
plugin.discovery=only_scan
"""

CONNECTOR = """name=snapshot
connector.class=io.debezium.connector.postgresql.PostgresConnector
tasks.max=1
database.hostname={hostname}
database.port={port}
database.user={username}
database.password={password}
database.dbname={database}
topic.prefix={prefix}
table.include.list=public.orders
plugin.name=pgoutput
slot.name={slot}
publication.name={slot}
snapshot.mode=initial_only
snapshot.fetch.size=20000
max.batch.size=20000
max.queue.size=80000
decimal.handling.mode=string
topic.creation.enable=true
topic.creation.default.replication.factor=1
topic.creation.default.partitions=4
"""


def fetch_jars() -> Path:
    if (JARS / "complete").exists():
        return JARS
    JARS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pom.xml").write_text(POM)
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={JARS}"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=600)
    (JARS / "complete").touch()
    return JARS


def snapshot(bench: Bench, kafka: KafkaServer, number: int) -> Pass:
    """From the first message in the topic to the last: what starting a JVM takes is not counted."""
    prefix = f"dbz{number}"
    topic = f"{prefix}.public.orders"
    with _connect(bench, kafka, prefix, number):
        _await_messages(kafka, topic, 1, 120)
        cpu, began, before = busy_seconds(), time.perf_counter(), count_messages(kafka, topic)
        _await_messages(kafka, topic, bench.rows, 900)
        seconds = time.perf_counter() - began
        return Pass(bench.rows - before, seconds, busy_seconds() - cpu)


@contextmanager
def _connect(bench: Bench, kafka: KafkaServer, prefix: str, number: int) -> Iterator[None]:
    folder = bench.fresh(f"debezium-{number}")
    worker, connector = folder / "worker.properties", folder / "connector.properties"
    worker.write_text(WORKER.format(hosts=kafka.hosts, folder=folder, rest=free_port()))
    connector.write_text(
        CONNECTOR.format(prefix=prefix, slot=f"dbz_{number}", **postgres_fields(bench.url))
    )
    log = (folder / "connect.log").open("w")
    process = subprocess.Popen(
        [
            *(kafka.java, "-Xmx2g", "-cp", f"{fetch_jars()}/*"),
            "org.apache.kafka.connect.cli.ConnectStandalone",
            *(str(worker), str(connector)),
        ],
        stdout=log,
        stderr=log,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)
        log.close()


def count_messages(kafka: KafkaServer, topic: str) -> int:
    """By the partitions' end offsets; transactions' markers count there too."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer = Consumer({"bootstrap.servers": kafka.hosts, "group.id": "count"})
    try:
        found = consumer.list_topics(topic, timeout=5).topics[topic]
        if found.error is not None:
            return 0
        return sum(
            consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=5)[1]
            for number in found.partitions
        )
    except KafkaException:
        return 0
    finally:
        consumer.close()


def _await_messages(kafka: KafkaServer, topic: str, wanted: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if count_messages(kafka, topic) >= wanted:
            return
        time.sleep(0.1)
    raise RuntimeError(f"Debezium sent {count_messages(kafka, topic)} of {wanted} messages")
