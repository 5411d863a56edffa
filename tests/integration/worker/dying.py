"""A bed whose worker dies in a process of its own, at a named step."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.worker.bed import Bed
from tests.integration.worker.doomed import InlineEngine

ROOT = Path(__file__).parents[3]


class InlineBed(Bed):
    """The same bed with packs in the worker's own process."""

    def __init__(self, home: Path) -> None:
        super().__init__(engine=None, home=home, lease_seconds=2.0, slots=1)  # type: ignore[arg-type]
        self.engine = InlineEngine()  # type: ignore[assignment]


@contextmanager
def doomed(home: Path, step: str, engine: str = "inline") -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.worker.doomed", str(home), step, engine],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)
