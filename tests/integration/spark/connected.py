"""The engine over Spark Connect, in a process of its own: one process cannot have both Sparks.

Given an address and a directory, it prints what came of it, as JSON.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from refill.domain.errors import EngineUnavailable
from refill.settings import Settings
from refill.spark.engine import SparkEngine
from tests.integration.spark.assignments import key_ticket, make_assignment, make_spec, make_ticket
from tests.sheets import SHEETS


def main(remote: str, directory: Path) -> dict[str, Any]:
    settings = Settings(home=directory / "home", spark_remote=remote)
    engine = SparkEngine(settings, {SHEETS.type: SHEETS})
    engine.start()
    fused = engine.run(make_assignment(directory, [make_ticket(n) for n in range(3)]))
    spec = make_spec(transform="select id, doc as body from source where id % 2 = 0")
    (sql,) = engine.run(make_assignment(directory, [make_ticket(1)], spec=spec))
    broken = make_assignment(directory, [key_ticket(1)], spec=spec, options={"read_fails_at": (1,)})
    (failed,) = engine.run(broken)
    return {
        "fused": [receipt.outcome for receipt in fused],
        "sql": [sql.outcome, sql.rows_delivered],
        "failed": failed.fault.code if failed.fault else None,
        "cancelled": _cancel(engine, directory),
        "alive": engine.alive(),
    }


def _cancel(engine: SparkEngine, directory: Path) -> bool:
    order = make_assignment(directory, [key_ticket(1)], options={"seconds": 60})
    cancelled = threading.Event()

    def run() -> None:
        try:
            engine.run(order)
        except EngineUnavailable:
            cancelled.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 30
    while not cancelled.wait(0.5) and time.monotonic() < deadline:
        engine.cancel(order.pack_id)
    return cancelled.is_set()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
    sys.stdout.flush()
    # a session that is only collected at the interpreter's end waits for its channel for ever
    os._exit(0)
