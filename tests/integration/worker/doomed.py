"""A worker in a process of its own that kills itself at a named step.

With the engine `inline` the packs run in the worker's own process, which is enough wherever Spark
has no part in the fault.
"""

import os
import signal
import sys
from pathlib import Path

from refill.packs.engine import Engine
from refill.packs.in_process import InProcessEngine
from refill.settings import Settings
from refill.spark.engine import SparkEngine
from refill.store.cipher import load_cipher
from refill.store.open import open_store
from refill.worker import Worker
from tests.integration.worker.bed import CONNECTORS


def main(home: Path, fatal: str, engine_name: str) -> None:
    def die(step: str, _: int = 0) -> None:
        if step == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    settings = Settings(home=home, lease_seconds=2.0, slots=1, spark_master="local[1]")
    engine: Engine = InProcessEngine(CONNECTORS, cores=1)
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
