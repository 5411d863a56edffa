from datetime import UTC, datetime, timedelta

import pytest

from refill.domain.backfill import ACTIVE, TRANSITIONS, CountedBackfill, Counters, Status
from refill.domain.errors import Conflict
from refill.domain.pipeline import Kind
from refill.domain.progress import measure_progress
from tests.specs import build_spec

BEGAN = datetime(2024, 1, 1, tzinfo=UTC)


def make_backfill(**changes: object) -> CountedBackfill:
    fields: dict[str, object] = {
        "id": 1,
        "uid": "u",
        "team_id": 1,
        "kind": Kind.SINK,
        "pipeline_id": "s",
        "pipeline_name": "orders",
        "spec": build_spec(
            kind=Kind.SINK,
            database_id="d",
            database_type="postgres",
            database_name="db",
            sink_type="files",
            sink_options={},
        ),
        "created_at": BEGAN,
        "updated_at": BEGAN,
        "counters": Counters(),
    }
    return CountedBackfill(**(fields | changes))  # type: ignore[arg-type]


def test_every_state_has_its_transitions() -> None:
    assert set(TRANSITIONS) == set(Status)


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.CANCELLED])
def test_a_final_state_stays(status: Status) -> None:
    for other in Status:
        with pytest.raises(Conflict, match="it is final"):
            make_backfill(status=status).with_status(other)


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.COMPLETED, Status.CANCELLED}))
def test_anything_unfinished_can_be_cancelled(status: Status) -> None:
    assert make_backfill(status=status).with_status(Status.CANCELLED).status is Status.CANCELLED


def test_a_change_is_a_copy() -> None:
    before = make_backfill()
    after = before.with_status(Status.SCHEDULED)
    assert (before.status, after.status) == (Status.CREATED, Status.SCHEDULED)


def test_a_refused_transition_says_what_is_allowed() -> None:
    with pytest.raises(Conflict, match="cancelled, created, scheduled"):
        make_backfill(status=Status.FAILED).with_status(Status.PAUSED)


def test_paused_holds_and_failed_does_not() -> None:
    assert Status.PAUSED in ACTIVE
    assert Status.FAILED not in ACTIVE


def test_progress_comes_from_the_slices() -> None:
    backfill = make_backfill(
        status=Status.RUNNING,
        started_at=BEGAN,
        counters=Counters(slices_total=4, slices_completed=1, rows_read=500),
    )
    progress = measure_progress(backfill, BEGAN + timedelta(seconds=10))
    assert (progress.fraction, progress.rows_per_second, progress.eta_seconds) == (0.25, 50.0, 30.0)


def test_a_failed_slice_of_a_sink_is_no_progress_and_a_failed_date_is() -> None:
    counters = Counters(slices_total=4, slices_completed=1, slices_failed=1)
    sink = make_backfill(status=Status.RUNNING, counters=counters)
    transfer = make_backfill(kind=Kind.TRANSFER, status=Status.RUNNING, counters=counters)
    assert measure_progress(sink, BEGAN).fraction == 0.25
    assert measure_progress(transfer, BEGAN).fraction == 0.5


def test_a_completed_backfill_is_whole_even_with_no_rows() -> None:
    backfill = make_backfill(status=Status.COMPLETED)
    assert measure_progress(backfill, BEGAN).fraction == 1.0
