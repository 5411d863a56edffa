"""A bed whose worker dies in a process of its own, at a named step."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from refill.packs.in_process import InProcessEngine
from tests.integration.worker.bed import CONNECTORS, Bed

ROOT = Path(__file__).parents[3]


class InlineBed(Bed):
    """The same bed with packs in the worker's own process."""

    def __init__(self, home: Path) -> None:
        super().__init__(engine=None, home=home, lease_seconds=2.0, slots=1)  # type: ignore[arg-type]
        self.engine = InProcessEngine(CONNECTORS, cores=1)  # type: ignore[assignment]


@contextmanager
def doomed(home: Path, step: str, engine: str = "inline") -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.worker.doomed", str(home), step, engine],
        cwd=ROOT,
        env={**_own_environment(), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)


def _own_environment() -> dict[str, str]:
    """Without what the Spark of the test run itself has left in ours."""
    foreign = ("SPARK_", "PYSPARK_", "JAVA_HOME")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
