"""What a pack's receipts say when its sink could not publish."""

import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from refill.connectors.kit.contract import Connector, Context, Job, Options, Sink, Written
from refill.domain.backfill import Backfill, Status
from refill.domain.errors import RefillError, SinkRefused, Superseded
from refill.domain.pipeline import Kind
from refill.domain.retry import RetryPolicy
from refill.domain.slice import Outcome, Receipt, Slice, Ticket, Whole
from refill.packs.pool import Pool
from refill.settings import Settings
from refill.store.records import ClaimedSlice, Finished, Pack
from refill.worker.assignments import TaskLimits
from refill.worker.ends import Ends, EndsFinder
from refill.worker.in_flight import InFlight
from refill.worker.pack_runner import PackRunner
from tests.specs import build_spec

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPEC = build_spec(
    kind=Kind.SINK,
    database_id="d",
    database_type="shut",
    database_name="d",
    sink_type="shut",
    sink_options={},
)
BACKFILL = Backfill(
    id=5,
    uid="u",
    team_id=1,
    kind=Kind.SINK,
    pipeline_id="s",
    pipeline_name="s",
    status=Status.RUNNING,
    spec=SPEC,
    created_at=NOW,
    updated_at=NOW,
)


class ShutSink(Sink):
    """Stages, and never publishes."""

    def __init__(self, error: RefillError) -> None:
        self._error = error

    def test(self) -> None: ...
    def close(self) -> None: ...
    def write(self, job: Job, ticket: Ticket, schema: Any, batches: Iterator[Any]) -> Written:
        raise AssertionError("the engine of this test writes nothing")

    def publish(self, job: Job, deliveries: Sequence[tuple[Ticket, Receipt]]) -> None:
        raise self._error


class FixedEnds(EndsFinder):
    def __init__(self, sink: Sink) -> None:
        nothing: Any = None
        super().__init__(nothing, {}, Settings())
        self._connector_of = Connector(
            type="shut", title="Shut", options_model=Options, open_sink=lambda *_: sink
        )

    def find(self, backfill: Backfill) -> Ends:
        return Ends(
            source=self._connector_of,
            source_options={},
            sink=self._connector_of,
            sink_options={},
            context=Context(team_id=1, files_root="/nowhere"),
        )


class Store:
    def __init__(self) -> None:
        self.receipts: list[Receipt] = []

    def finish_slices(self, backfill_id: int, receipts: Sequence[Receipt], policy: Any) -> Finished:
        self.receipts += receipts
        return Finished(accepted=frozenset(), superseded=frozenset(), status=Status.RUNNING)


def staged(assignment: Any) -> list[Receipt]:
    return [
        Receipt(
            slice_id=ticket.slice_id,
            attempt=ticket.attempt,
            outcome=Outcome.DONE,
            rows_read=9,
            rows_delivered=8,
            rows_filtered=1,
            bytes_written=700,
            staged="somewhere",
        )
        for ticket in assignment.tickets
    ]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (SinkRefused("The folder is gone."), Outcome.FAILED),
        (Superseded("A newer attempt."), Outcome.SUPERSEDED),
    ],
    ids=["refused", "superseded"],
)
def test_what_could_not_be_published_was_not_delivered(
    error: RefillError, outcome: Outcome
) -> None:
    store: Any = Store()
    engine: Any = SimpleNamespace(run=staged, alive=lambda: True)
    prepared: Any = SimpleNamespace(ensure=lambda backfill, ends: None)
    part = Slice(id=1, backfill_id=5, index=0, extent=Whole(), target="t", attempt=1, queued_at=NOW)
    pack = Pack(
        id="p", backfill=BACKFILL, rows_rejected=0, slices=(ClaimedSlice(slice=part, fence=1),)
    )
    held, pool = InFlight(), Pool()
    runner = PackRunner(
        store=store,
        engine=engine,
        ends=FixedEnds(ShutSink(error)),
        pool=pool,
        prepared=prepared,
        in_flight=held,
        policy=RetryPolicy(),
        limits=TaskLimits(),
        abandoned=threading.Event(),
        on_sealable=lambda: None,
        on_step=lambda step: None,
    )
    runner.run(held.add_pack(pack))
    pool.close()
    (receipt,) = store.receipts
    assert receipt.outcome is outcome
    assert (receipt.rows_read, receipt.rows_delivered, receipt.bytes_written) == (9, 0, 0)
