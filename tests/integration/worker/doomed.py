"""A worker in a process of its own that kills itself at a named step.

With the engine `inline` the packs run in the worker's own process, which is enough wherever Spark
has no part in the fault.
"""

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from refill.connectors.kit.contract import Context
from refill.domain.slice import Receipt
from refill.domain.spec import Spec
from refill.packs.assignment import Assignment
from refill.packs.engine import Engine
from refill.packs.run import run_pack
from refill.settings import Settings
from refill.spark.engine import SparkEngine
from refill.store.cipher import load_cipher
from refill.store.open import open_store
from refill.worker import Worker
from tests.integration.worker.bed import CONNECTORS


class InlineEngine:
    cores = 1

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def cancel(self, pack_id: str) -> None: ...
    def keep_warm(self) -> None: ...
    def alive(self) -> bool:
        return True

    def run(self, order: Assignment) -> list[Receipt]:
        source, sink = CONNECTORS[order.source_type], CONNECTORS[order.sink_type]
        return list(run_pack(order, source, sink))

    def check_transform(self, spec: Spec, options: Mapping[str, Any], context: Context) -> Any:
        raise NotImplementedError


def main(home: Path, fatal: str, engine_name: str) -> None:
    def die(step: str, _: int = 0) -> None:
        if step == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    settings = Settings(home=home, lease_seconds=2.0, slots=1, spark_master="local[1]")
    engine: Engine = InlineEngine()
    if engine_name == "spark":
        engine = SparkEngine(settings, CONNECTORS)
    store = open_store(None, home, load_cipher(None, home))
    worker = Worker(
        store=store,
        engine=engine,
        connectors=CONNECTORS,
        settings=settings,
        on_step=die,
        # in Spark's Python worker it would only kill that
        on_task_step=None if engine_name == "spark" else die,
    )
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    worker.run()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
