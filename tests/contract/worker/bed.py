"""A whole worker in a thread, over an embedded store, a system in memory and packs in-process."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from refill.domain import pipeline
from refill.domain.backfill import Backfill, CountedBackfill, Status
from refill.domain.pipeline import Database, Destination, Kind, Transfer
from refill.domain.slice import Slice
from refill.packs.in_process import InProcessEngine
from refill.settings import Settings
from refill.store.port import Store
from refill.store.records import NewBackfill
from refill.worker import Worker
from tests.memory import TABLE, Memory, MemoryTable, batch_of
from tests.specs import build_spec
from tests.waiting import until

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SLICES, ROWS = 4, 20  # of the one table, and of each slice; two batches to a slice
EVERY_ID = list(range(1, SLICES * ROWS + 1))
SECONDS = 15.0  # for what takes less than one


class KeptEngine(InProcessEngine):
    """Outlives its workers: what a worker did not cut short by itself goes on."""

    def stop(self) -> None: ...


class Bed:
    def __init__(self, home: Path, store: Store) -> None:
        self.home = home
        self.store = store
        half = ROWS // 2
        self.memory = Memory(
            MemoryTable(
                [batch_of(first, half) for first in range(1, SLICES * ROWS + 1, half)],
                cuts=tuple(ROWS * number for number in range(1, SLICES)),
            )
        )
        self.connectors = {
            "memory": self.memory.connector(),
            "marking": self.memory.connector("marking", fading_markers=True),
        }
        self.engine: InProcessEngine = KeptEngine(self.connectors)
        self.trouble = self.memory.trouble
        self.rounds = 0  # of the chores, of which the schedules are the first

    def backfill(
        self,
        sink_type: str = "memory",
        *,
        team_id: int = 1,
        transform: str | None = None,
        **changes: Any,
    ) -> Backfill:
        """Of the table, to a sink of its own."""
        database = self._database(team_id)
        sink = self.store.insert_sink(
            pipeline.Sink(
                id=str(uuid4()),
                team_id=team_id,
                name=uuid4().hex,
                database_id=database.id,
                destination_type=sink_type,
                destination_options={},
                created_at=NOW,
                updated_at=NOW,
            )
        )
        spec = build_spec(
            kind=Kind.SINK,
            database_id=database.id,
            database_type="memory",
            database_name=database.name,
            table=TABLE,
            columns=tuple(column.name for column in TABLE.columns),
            sort_columns=("id",),
            transform=transform,
            sink_type=sink_type,
            sink_options={},
            sink_id=sink.id,
        )
        return self._insert(
            kind=Kind.SINK, team_id=team_id, pipeline_id=sink.id, spec=spec, **changes
        )

    def dates(self, dates: Sequence[date], **changes: Any) -> Backfill:
        """Of dates of the table, to a destination of its own."""
        database = self._database()
        destination = self.store.insert_destination(
            Destination(
                id=0,
                team_id=1,
                name=uuid4().hex,
                type="memory",
                options={},
                created_at=NOW,
                updated_at=NOW,
            )
        )
        transfer = self.store.insert_transfer(
            Transfer(
                id=0,
                team_id=1,
                name=uuid4().hex,
                database_id=database.id,
                destination_id=destination.id,
                destination_table="rows",
                table=TABLE.full_name,
                date_column="day",
                created_at=NOW,
                created_user_id=1,
                updated_at=NOW,
            )
        )
        spec = build_spec(
            kind=Kind.TRANSFER,
            database_id=database.id,
            database_type="memory",
            database_name=database.name,
            table=TABLE,
            columns=tuple(column.name for column in TABLE.columns),
            date_column="day",
            dates=tuple(dates),
            sink_type="memory",
            sink_options={},
            transfer_id=transfer.id,
            destination_id=destination.id,
            destination_table="rows",
        )
        return self._insert(kind=Kind.TRANSFER, pipeline_id=str(transfer.id), spec=spec, **changes)

    def look(self, backfill: Backfill) -> CountedBackfill:
        return self.store.get_backfill(1, backfill.id)

    def slices(self, backfill: Backfill) -> tuple[Slice, ...]:
        return self.store.list_slices(backfill.id).items

    def wait(self, backfill: Backfill, status: Status) -> CountedBackfill:
        until(lambda: self.look(backfill).status is status, f"{status} of {backfill.id}", SECONDS)
        return self.look(backfill)

    def let_chores_run(self) -> None:
        """Each of them once at least, begun after this was called."""
        rounds = self.rounds
        until(lambda: self.rounds >= rounds + 2, "the chores", SECONDS)

    def make_worker(self, **settings: Any) -> Worker:
        chosen = {"home": self.home, "slots": 1, "lease_seconds": 30.0, "grace_seconds": 0.1}
        return Worker(
            store=self.store,
            engine=self.engine,
            connectors=self.connectors,
            settings=Settings(**chosen | settings),
            fire_schedules=self._count_round,
        )

    @contextmanager
    def working(self, **settings: Any) -> Iterator[Worker]:
        """At the end of the block it is stopped, and has ended."""
        worker = self.make_worker(**settings)
        thread = threading.Thread(target=worker.run, daemon=True)
        thread.start()
        assert worker.ready.wait(SECONDS)
        try:
            yield worker
        finally:
            worker.stop()
            thread.join(30)
            assert not thread.is_alive()

    def _count_round(self) -> None:
        self.rounds += 1

    def _database(self, team_id: int = 1) -> Database:
        return self.store.insert_database(
            Database(
                id=str(uuid4()),
                team_id=team_id,
                name=uuid4().hex,
                type="memory",
                options={},
                created_at=NOW,
                updated_at=NOW,
            )
        )

    def _insert(self, **changes: Any) -> Backfill:
        return self.store.insert_backfill(
            NewBackfill(
                **{
                    "uid": str(uuid4()),
                    "team_id": 1,
                    "pipeline_name": "rows out",
                    "holds": (TABLE.full_name,),
                    **changes,
                }
            )
        )
