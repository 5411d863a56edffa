"""A slice that Kafka has, and nobody heard of: found by its marker, also while paused."""

import json
import signal
from collections import Counter
from pathlib import Path
from uuid import uuid4

import pytest

from refill.domain.backfill import Backfill, Status
from refill.domain.pipeline import Kind, Sink
from refill.store.records import NewBackfill
from tests.integration.worker.bed import NOW
from tests.integration.worker.dying import InlineBed, doomed
from tests.servers.kafka import KafkaServer
from tests.servers.read_committed import read_committed
from tests.sheets import TABLE
from tests.specs import build_spec
from tests.waiting import until

SLICES, ROWS = 4, 10  # what the made-up source plans for one slot, and rows of each


def backfill_to(bed: InlineBed, kafka: KafkaServer, topic: str) -> Backfill:
    database = bed.store.get_database(1, bed.transfer().database_id)
    options = {"hosts": kafka.hosts, "topic": topic}
    sink = bed.store.insert_sink(
        Sink(
            id=str(uuid4()),
            team_id=1,
            name="rows to kafka",
            database_id=database.id,
            destination_type="kafka",
            destination_options=options,
            created_at=NOW,
            updated_at=NOW,
        )
    )
    spec = build_spec(
        kind=Kind.SINK,
        database_id=database.id,
        database_type="sheets",
        database_name=database.name,
        table=TABLE,
        columns=tuple(column.name for column in TABLE.columns),
        sort_columns=("id",),
        sink_type="kafka",
        sink_options=options,
        sink_id=sink.id,
    )
    return bed.store.insert_backfill(
        NewBackfill(
            uid=str(uuid4()),
            team_id=1,
            kind=Kind.SINK,
            pipeline_id=sink.id,
            pipeline_name=sink.name,
            spec=spec,
            holds=(TABLE.full_name,),
            seals=True,
        )
    )


def count_keys(kafka: KafkaServer, topic: str) -> Counter[int]:
    messages = read_committed(kafka, topic)
    return Counter(json.loads(message.value)["record"]["id"] for message in messages)


@pytest.mark.timeout(180)
def test_what_a_killed_worker_committed_is_recorded_while_the_backfill_is_paused(
    kafka: KafkaServer, tmp_path: Path
) -> None:
    bed, topic = InlineBed(tmp_path / "home"), kafka.create_topic()
    backfill = backfill_to(bed, kafka, topic)
    with doomed(bed.settings.home_path, "after_publish_before_finish") as process:
        assert process.wait(60) == -signal.SIGKILL
    committed = count_keys(kafka, topic)
    claimed = bed.look(backfill).counters.slices_claimed
    assert 0 < claimed < SLICES
    assert len(committed) == claimed * ROWS
    assert bed.look(backfill).counters.rows_delivered == 0
    bed.store.pause_backfill(1, backfill.id)

    with bed.working():
        until(lambda: bed.look(backfill).counters.slices_completed == claimed, "the record")
        paused = bed.look(backfill)
        assert paused.status is Status.PAUSED
        assert paused.counters.rows_delivered == len(committed)
        assert paused.counters.slices_pending == SLICES - claimed
        assert count_keys(kafka, topic) == committed

        bed.store.resume_backfill(1, backfill.id)
        ended = bed.wait(backfill, Status.COMPLETED)

    delivered = count_keys(kafka, topic)
    assert set(delivered.values()) == {1}
    assert len(delivered) == ended.counters.rows_delivered == SLICES * ROWS
