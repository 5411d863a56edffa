"""A worker in a thread, over a real embedded store and the run's Spark."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from refill.connectors.kit.contract import Connector, Context
from refill.connectors.kit.registry import load_connectors
from refill.domain.backfill import CountedBackfill, Status
from refill.domain.pipeline import Database, Destination, Kind, Transfer
from refill.domain.slice import Receipt
from refill.domain.spec import Spec
from refill.packs.assignment import Assignment
from refill.settings import Settings
from refill.spark.engine import SparkEngine
from refill.store.cipher import load_cipher
from refill.store.open import open_store
from refill.store.port import Store
from refill.store.records import NewBackfill
from refill.worker import Worker
from tests.sheets import SHEETS, TABLE
from tests.specs import build_spec
from tests.waiting import until

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONNECTORS: Mapping[str, Connector] = {**load_connectors(), SHEETS.type: SHEETS}


class SharedEngine:
    """The run's engine, which outlives each worker."""

    def __init__(self, engine: SparkEngine) -> None:
        self.engine = engine
        self.dead = False
        self.orders: list[Assignment] = []

    def start(self) -> None:
        self.engine.start()

    def stop(self) -> None: ...

    @property
    def cores(self) -> int:
        return self.engine.cores

    def alive(self) -> bool:
        return not self.dead and self.engine.alive()

    def keep_warm(self) -> None:
        self.engine.keep_warm()

    def run(self, order: Assignment) -> list[Receipt]:
        self.orders.append(order)
        return self.engine.run(order)

    def cancel(self, pack_id: str) -> None:
        self.engine.cancel(pack_id)

    def check_transform(self, spec: Spec, options: Mapping[str, Any], context: Context) -> Any:
        return self.engine.check_transform(spec, options, context)


class Bed:
    def __init__(self, engine: SparkEngine, home: Path, **settings: Any) -> None:
        self.engine = SharedEngine(engine)
        self.out = home / "out"
        self.settings = Settings(
            **{"home": home, "lease_seconds": 6.0, "grace_seconds": 5.0, **settings}
        )
        home.mkdir(exist_ok=True)
        self.store: Store = open_store(None, home, load_cipher(None, home))
        self.store.migrate()

    def transfer(self, **options: Any) -> Transfer:
        """A transfer from sheets to sheets; the options say what goes wrong."""
        chosen = {"path": str(self.out), **options}
        database = self.store.insert_database(
            Database(
                id=str(uuid4()),
                team_id=1,
                name=uuid4().hex,
                type="sheets",
                options=chosen,
                created_at=NOW,
                updated_at=NOW,
            )
        )
        destination = self.store.insert_destination(
            Destination(
                id=0,
                team_id=1,
                name=uuid4().hex,
                type="sheets",
                options=chosen,
                created_at=NOW,
                updated_at=NOW,
            )
        )
        return self.store.insert_transfer(
            Transfer(
                id=0,
                team_id=1,
                name=uuid4().hex,
                database_id=database.id,
                destination_id=destination.id,
                destination_table="rows",
                table="public.rows",
                date_column="day",
                created_at=NOW,
                created_user_id=1,
                updated_at=NOW,
            )
        )

    def backfill(self, transfer: Transfer, days: int = 5, **spec: Any) -> CountedBackfill:
        dates = tuple(date(2024, 1, 1) + timedelta(days=n) for n in range(days))
        database = self.store.get_database(1, transfer.database_id)
        return self.store.insert_backfill(
            NewBackfill(
                uid=str(uuid4()),
                team_id=1,
                kind=Kind.TRANSFER,
                pipeline_id=str(transfer.id),
                pipeline_name=transfer.name,
                spec=build_spec(
                    **{
                        "kind": Kind.TRANSFER,
                        "database_id": transfer.database_id,
                        "database_type": "sheets",
                        "database_name": database.name,
                        "table": TABLE,
                        "columns": tuple(column.name for column in TABLE.columns),
                        "date_column": "day",
                        "dates": dates,
                        "sink_type": "sheets",
                        "sink_options": database.options,
                        "transfer_id": transfer.id,
                        "destination_id": transfer.destination_id,
                        "destination_table": transfer.destination_table,
                        **spec,
                    }
                ),
                range_start=dates[0],
                range_end=dates[-1],
                slices_planned=len(dates),
                holds=tuple(day.isoformat() for day in dates),
            )
        )

    def look(self, backfill: CountedBackfill) -> CountedBackfill:
        return self.store.get_backfill(1, backfill.id)

    def wait(
        self, backfill: CountedBackfill, *statuses: Status, seconds: float = 60.0
    ) -> CountedBackfill:
        until(lambda: self.look(backfill).status in statuses, "its end", seconds)
        return self.look(backfill)

    @contextmanager
    def working(self, **changes: Any) -> Iterator[Worker]:
        worker = Worker(
            **{
                "store": self.store,
                "engine": self.engine,
                "connectors": CONNECTORS,
                "settings": self.settings,
                **changes,
            }
        )
        thread = threading.Thread(target=worker.run, daemon=True)
        thread.start()
        assert worker.ready.wait(60)
        try:
            yield worker
        finally:
            worker.stop()
            thread.join(30)
            assert not thread.is_alive()
