"""Whose work killed the engine is charged for it; what merely ran beside goes back as it was."""

import threading
from collections.abc import Callable

from refill.domain.backfill import Backfill, Status
from refill.domain.errors import EngineUnavailable
from refill.domain.slice import Receipt, SliceState
from refill.packs.assignment import Assignment
from refill.packs.in_process import InProcessEngine
from tests.contract.worker.bed import EVERY_ID, SECONDS, Bed
from tests.contract.worker.conftest import bed, migrated
from tests.waiting import until

__all__ = ["bed", "migrated"]  # fixtures


class FragileEngine(InProcessEngine):
    """Dies of one backfill's packs, and takes with it what runs beside."""

    killer: int
    deaths = 0
    beside: threading.Event  # something else runs
    after_two: Callable[[], None]  # deaths: nothing more is to be slow

    def run(self, assignment: Assignment) -> list[Receipt]:
        if assignment.job.backfill_id != self.killer:
            self.beside.set()
            return super().run(assignment)
        self.beside.wait(1.0)
        self.deaths += 1
        if self.deaths == 2:
            self.after_two()
        super().stop()
        raise EngineUnavailable("The JVM is gone.")


def fragile(bed: Bed, killer: Backfill) -> FragileEngine:
    engine = bed.engine = FragileEngine(bed.connectors, cores=2)
    engine.killer, engine.beside = killer.id, threading.Event()
    return engine


def work_until_it_dies(bed: Bed) -> None:
    """As the supervisor sees it: started again and again."""
    worker = bed.make_worker(slots=2)
    thread = threading.Thread(target=lambda: _run(worker), daemon=True)
    thread.start()
    until(lambda: not thread.is_alive() or _all_ended(bed), "the end", SECONDS)
    worker.stop()
    thread.join(30)
    assert not thread.is_alive()


def _run(worker: object) -> None:
    try:
        worker.run()  # type: ignore[attr-defined]
    except EngineUnavailable:
        return


def _all_ended(bed: Bed) -> bool:
    return not any(each.status.active for each in bed.store.list_backfills(1).items)


def test_the_killer_runs_alone_the_third_time_and_fails_with_a_sentence(bed: Bed) -> None:
    killer, innocent = bed.backfill(), bed.backfill(pipeline_name="innocent")
    engine = fragile(bed, killer)
    # slow enough to be there when the engine dies
    hang = bed.trouble.hang("read")
    engine.after_two = lambda: bed.trouble.release(hang)
    while not _all_ended(bed):
        work_until_it_dies(bed)
        assert engine.deaths < 20

    assert bed.look(innocent).status is Status.COMPLETED
    assert {part.failures for part in bed.slices(innocent)} == {0}
    assert bed.memory.ids() == EVERY_ID
    ended = bed.look(killer)
    assert ended.status is Status.FAILED
    assert "with nothing beside it" in (ended.error or "")
    assert {(part.state, part.error_code) for part in bed.slices(killer)} == {
        (SliceState.FAILED, "engine_killed")
    }
