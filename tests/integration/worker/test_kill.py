"""kill -9 of the worker, wherever it stands: another finishes, and the dead one leaves nothing."""

import json
import signal
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from refill.domain.backfill import Backfill, CountedBackfill, Status
from refill.domain.slice import SliceState
from tests.integration.worker.bed import Bed
from tests.integration.worker.dying import InlineBed, doomed
from tests.waiting import until


def assert_delivered_once(bed: Bed, ended: CountedBackfill) -> None:
    files = sorted(bed.out.glob("[0-9]*.json"))
    ids = [row["id"] for path in files for row in json.loads(path.read_text())["rows"]]
    assert len(ids) == len(set(ids)) == ended.counters.rows_delivered == 50


@pytest.mark.parametrize(
    "step",
    ["after_claim", "mid_read", "mid_write", "before_publish", "after_publish_before_finish"],
)
def test_another_worker_finishes_what_a_killed_one_began(tmp_path: Path, step: str) -> None:
    bed = InlineBed(tmp_path / "home")
    backfill = bed.backfill(bed.transfer())
    with doomed(bed.settings.home_path, step) as process:
        assert process.wait(60) == -signal.SIGKILL
    with bed.working():
        ended = bed.wait(backfill, Status.COMPLETED)

    assert_delivered_once(bed, ended)


@pytest.mark.spark
def test_a_killed_worker_takes_its_jvm_and_python_workers_along(tmp_path: Path) -> None:
    bed = InlineBed(tmp_path / "home")
    backfill = bed.backfill(bed.transfer(seconds=100), days=1)
    with doomed(bed.settings.home_path, "never", "spark") as process:
        until(lambda: _runs(bed, backfill), "a running slice", 90)
        until(lambda: _python_workers(process.pid), "Python workers")
        family = psutil.Process(process.pid).children(recursive=True)
        names = {each.name() for each in family}
        process.kill()
        process.wait(10)
        _, left = psutil.wait_procs(family, timeout=15)

    assert "java" in names
    assert left == []


def _runs(bed: Bed, backfill: Backfill) -> bool:
    slices = bed.store.list_slices(backfill.id, states=[SliceState.RUNNING]).items
    return bool(slices)


def _python_workers(pid: int) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.Error):
            if "pyspark.daemon" in " ".join(child.cmdline()):
                found.append(child)
    return found
