"""Messages to Kafka: refill, its parts alone, and Debezium, into the same broker."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console

from benchmarks import bare_kafka, debezium, report
from benchmarks.measure import Pass, timed
from benchmarks.peers import Bench
from benchmarks.refill_server import RefillServer
from tests.servers.kafka import KafkaServer, running_kafka

REFILL = "refill → Kafka, exactly once"
BARE = "ADBC → polars → produce_batch, transactions, two bare processes"
DEBEZIUM = "Debezium snapshot → Kafka, at least once"
BARS = [(REFILL, DEBEZIUM, 1.8, 3.0), (REFILL, BARE, 0.6, 0.9)]

console = Console()


class NotHere(Exception):
    """There is no broker to be had on this machine."""


def run(bench: Bench, refill: RefillServer, passes: int, *, peers: bool) -> bool:
    with _broker() as kafka:
        results: dict[str, list[Pass]] = {REFILL: [], BARE: []}
        if peers:
            results[DEBEZIUM] = []
        for number in range(passes + 1):
            for name, one in _round(bench, refill, kafka, number, peers=peers).items():
                label = f"pass {number}" if number else "warm-up"
                console.print(
                    f"{label}: {name}: {one.rate:,.0f} rows/s, CPU {one.cpu_seconds:.1f} s"
                )
                if number:
                    results[name].append(one)
    report.show_rates(results, REFILL)
    ratios = [
        (f"{ours} : {other}", report.ratio(results, ours, other), must, aim)
        for ours, other, must, aim in BARS
        if other in results
    ]
    met = report.show_bars(ratios)
    report.save("kafka", results, rows=bench.rows, ratios=ratios)
    title = f"PostgreSQL to Kafka, {bench.rows:,} messages, {os.cpu_count()} cores"
    report.draw_rates(results, report.IMAGES / "bench-kafka.png", title)
    return met


@contextmanager
def _broker() -> Iterator[KafkaServer]:
    with ExitStack() as stack:
        try:
            kafka = stack.enter_context(running_kafka())
        except RuntimeError as exc:
            raise NotHere(str(exc)) from exc
        yield kafka


def _round(
    bench: Bench, refill: RefillServer, kafka: KafkaServer, number: int, *, peers: bool
) -> dict[str, Pass]:
    """One pass of each, every one into a topic of its own, dropped afterwards."""
    found: dict[str, Pass] = {}
    topic = kafka.create_topic(4)
    sink = f"kafka-{number}"
    destination = {"type": "kafka", "hosts": kafka.hosts, "topic": topic}
    refill.add_sink(sink, "orders", destination)
    found[REFILL] = timed(lambda: int(refill.backfill(sink)["rows_ingested_count"]))
    _drop(kafka, topic)
    topic = kafka.create_topic(4)
    found[BARE] = timed(lambda: bare_kafka.produce(bench, kafka.hosts, topic))
    _drop(kafka, topic)
    if peers and number:
        found[DEBEZIUM] = debezium.snapshot(bench, kafka, number)
        _drop(kafka, f"dbz{number}.public.orders")
    return found


def _drop(kafka: KafkaServer, topic: str) -> None:
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": kafka.hosts})  # kept: its calls die with it
    for dropped in admin.delete_topics([topic]).values():
        dropped.result(30)
