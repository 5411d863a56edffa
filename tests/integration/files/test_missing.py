"""What was delivered is looked at again before a backfill says that it is complete."""

import shutil
from datetime import UTC, datetime

from refill.connectors.kit.contract import Job, Sink
from refill.domain.slice import Slice
from tests.contract.sinks.bed import SinkBed, batch_of, deliver
from tests.contract.sinks.beds.files import ParquetSink, ParquetTransfer
from tests.integration.files.test_files import base


def delivered(bed: SinkBed, sink: Sink, job: Job, index: int) -> Slice:
    """The index-th slice, as the store knows it afterwards."""
    ticket = bed.ticket(index)
    written = deliver(sink, job, ticket, [batch_of(index, 3, "a")])
    return Slice(
        id=ticket.slice_id,
        backfill_id=job.backfill_id,
        index=index,
        extent=ticket.extent,
        target=ticket.target,
        bytes_written=written.bytes_written,
        queued_at=datetime(2024, 1, 1, tzinfo=UTC),
    )


def test_a_slices_file_that_is_gone_or_cut_is_missed_before_the_seal(sinks: ParquetSink) -> None:
    sink, job = sinks.open(), sinks.job()
    slices = [delivered(sinks, sink, job, index) for index in range(3)]
    assert sink.missing(job, slices) == []
    (generation,) = base(sinks).glob("_public.orders.*")
    (generation / "slice-00000.parquet").unlink()
    with (generation / "slice-00002.parquet").open("r+b") as file:
        file.truncate(10)
    assert sink.missing(job, slices) == [slices[0], slices[2]]
    shutil.rmtree(generation)
    assert sink.missing(job, slices) == slices


def test_a_set_that_is_visible_is_its_readers_own(sinks: ParquetSink) -> None:
    sink, job = sinks.open(), sinks.job()
    slices = [delivered(sinks, sink, job, index) for index in range(2)]
    sink.seal(job)
    (base(sinks) / "public.orders" / "slice-00000.parquet").unlink()
    assert sink.missing(job, slices) == []


def test_a_date_that_is_gone_is_missed_and_one_that_was_replaced_is_not(
    dates: ParquetTransfer,
) -> None:
    sink, job = dates.open(), dates.job()
    slices = [delivered(dates, sink, job, index) for index in range(3)]
    shutil.rmtree(base(dates) / "orders/date=2024-02-28")
    deliver(sink, job, dates.ticket(1, attempt=2), [batch_of(1, 9, "longer")])
    (base(dates) / "orders/date=2024-03-01/data.parquet").unlink()
    assert sink.missing(job, slices) == [slices[0], slices[2]]
