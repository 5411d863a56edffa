"""Files on a real disk: where they lie, what a reader sees meanwhile, and what is kept out."""

import os
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from refill.connectors.files import FilesOptions
from refill.connectors.files.folder import Folder
from refill.connectors.files.generations import Generations
from refill.connectors.files.sink import FilesSink
from refill.connectors.kit.contract import Context, Job, Sink
from refill.domain.errors import SinkRefused, SinkUnavailable, Superseded
from refill.domain.pipeline import Kind
from refill.domain.slice import Ticket
from tests.contract.sinks.bed import SCHEMA, SinkBed, batch_of, deliver, receipt_of, stage
from tests.contract.sinks.beds.files import ParquetSink, ParquetTransfer

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk takes root")


def base(bed: SinkBed) -> Path:
    return bed.folder / "files" / "1" / "exports" / "shop"


def visible(folder: Path) -> list[str]:
    """Files as a reader finds them: through links, passing over what starts with `_`."""
    found = []
    for here, folders, files in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith("_")]
        found += [os.path.relpath(os.path.join(here, name), folder) for name in files]
    return sorted(found)


def test_a_transfer_has_a_folder_per_date(dates: ParquetTransfer) -> None:
    sink, job = dates.open(), dates.job()
    for index in range(3):
        deliver(sink, job, dates.ticket(index), [batch_of(index, 2, "a")] if index else [])
    assert visible(base(dates)) == [
        "orders/date=2024-02-28/data.parquet",
        "orders/date=2024-02-29/data.parquet",
        "orders/date=2024-03-01/data.parquet",
    ]
    empty = pq.ParquetFile(base(dates) / "orders/date=2024-02-28/data.parquet").read()
    assert empty.num_rows == 0
    assert empty.schema.names == SCHEMA.names


def test_a_table_is_a_folder_of_slices_once_it_is_whole(sinks: ParquetSink) -> None:
    sink, job = sinks.open(), sinks.job()
    deliver(sink, job, sinks.ticket(0), [batch_of(0, 2, "a")])
    deliver(sink, job, sinks.ticket(1), [batch_of(1, 2, "a")])
    assert visible(base(sinks)) == []
    sink.seal(job)
    assert visible(base(sinks)) == [
        "public.orders/slice-00000.parquet",
        "public.orders/slice-00001.parquet",
    ]
    assert os.readlink(base(sinks) / "public.orders").startswith("_public.orders.")


def test_a_later_backfill_replaces_the_set_at_its_completion(sinks: ParquetSink) -> None:
    sink = sinks.open()
    first, second, third = (sinks.job(backfill_id=n) for n in (1, 2, 3))
    for index in range(2):
        deliver(sink, first, sinks.ticket(index), [batch_of(index, 2, "one")])
    sink.seal(first)
    deliver(sink, second, sinks.ticket(0, fence=2), [batch_of(0, 3, "two")])
    assert {note for _, note in sinks.rows()} == {"one"}
    sink.seal(second)
    assert [note for _, note in sinks.rows()] == ["two"] * 3
    # the replaced set outlives the swap, for whoever reads it; not the backfill after it
    assert len(list(base(sinks).glob("_public.orders.*"))) == 2
    deliver(sink, third, sinks.ticket(0, fence=3), [batch_of(0, 1, "three")])
    sink.seal(third)
    assert len(list(base(sinks).glob("_public.orders.*"))) == 2
    assert [note for _, note in sinks.rows()] == ["three"]


def test_an_empty_table_ends_as_an_empty_set(sinks: ParquetSink) -> None:
    sink = sinks.open()
    sink.seal(sinks.job())
    assert (base(sinks) / "public.orders").is_dir()
    assert visible(base(sinks)) == []


def test_a_partial_backfill_leaves_the_whole_set_alone(sinks: ParquetSink) -> None:
    sink, whole = sinks.open(), sinks.job()
    deliver(sink, whole, sinks.ticket(0), [batch_of(0, 5, "whole")])
    sink.seal(whole)
    part = sinks.job(backfill_id=2, start_position="2", end_position="3")
    deliver(sink, part, sinks.ticket(0, fence=2), [batch_of(0, 2, "part", first=2)])
    sink.seal(part)
    assert visible(base(sinks)) == [
        "public.orders/slice-00000.parquet",
        "public.orders@2..3/slice-00000.parquet",
    ]
    assert {note for _, note in sinks.rows()} == {"whole"}


def test_an_earlier_backfill_cannot_be_taken_up_after_a_later_one_sealed(
    sinks: ParquetSink,
) -> None:
    sink, failed, later = sinks.open(), sinks.job(1), sinks.job(2)
    deliver(sink, failed, sinks.ticket(0), [batch_of(0, 2, "old")])
    deliver(sink, later, sinks.ticket(0, fence=2), [batch_of(0, 2, "new")])
    sink.seal(later)
    with pytest.raises(SinkRefused, match="Start a new backfill"):
        sink.stage(failed, [sinks.ticket(1, fence=3)])
    with pytest.raises(SinkRefused, match="Start a new backfill"):
        sink.seal(failed)
    assert {note for _, note in sinks.rows()} == {"new"}


def test_a_discarded_backfill_leaves_no_files_and_cannot_go_on(sinks: ParquetSink) -> None:
    sink, job = sinks.open(), sinks.job()
    deliver(sink, job, sinks.ticket(0), [batch_of(0, 2, "a")])
    sink.discard(job)
    sink.discard(job)
    assert [file for file in base(sinks).rglob("*") if file.is_file()] == []
    with pytest.raises(SinkRefused, match="discarded"):
        sink.stage(job, [sinks.ticket(1)])


def test_a_failed_backfill_keeps_its_files_where_the_set_is_another_sinks(
    sinks: ParquetSink,
) -> None:
    sink, failed, later = sinks.open(), sinks.job(1), sinks.job(2)
    other = sinks.job(9, sink_id="33333333-3333-4333-8333-333333333333")
    deliver(sink, other, sinks.ticket(0), [batch_of(0, 1, "other")])
    sink.seal(other)
    deliver(sink, failed, sinks.ticket(0), [batch_of(0, 2, "kept")])
    sink.prepare(later, SCHEMA)
    deliver(sink, failed, sinks.ticket(1), [batch_of(1, 2, "kept")])
    sink.seal(failed)
    assert [note for _, note in sinks.rows()] == ["kept"] * 4


@pytest.mark.parametrize("step", ["make_link", "move"])
def test_a_seal_that_a_cancel_overtakes_shows_nothing(
    sinks: ParquetSink, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    sink, job = sinks.open(), sinks.job()
    deliver(sink, job, sinks.ticket(0), [batch_of(0, 2, "a")])
    go_on = getattr(Folder, step)

    def cancelled_first(*arguments: Any) -> None:
        sinks.open().discard(job)
        go_on(*arguments)

    monkeypatch.setattr(Folder, step, cancelled_first)
    with pytest.raises(Superseded):
        sink.seal(job)
    assert not os.path.lexists(base(sinks) / "public.orders")
    assert visible(base(sinks)) == []


def test_a_seal_that_overtakes_a_cancel_shows_the_whole_set(
    sinks: ParquetSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, job = sinks.open(), sinks.job()
    deliver(sink, job, sinks.ticket(0), [batch_of(0, 2, "a")])
    enter = Folder.enter

    def sealed_first(folder: Folder, name: str, *, create: bool = False) -> Folder:
        if name.endswith("~discarded"):
            sinks.open().seal(job)
        return enter(folder, name, create=create)

    monkeypatch.setattr(Folder, "enter", sealed_first)
    sink.discard(job)
    assert visible(base(sinks)) == ["public.orders/slice-00000.parquet"]
    sink.seal(job)
    sink.discard(job)
    assert visible(base(sinks)) == ["public.orders/slice-00000.parquet"]


def test_a_seal_that_saw_no_mark_is_let_be_by_the_cancel_that_made_it(
    sinks: ParquetSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, job = sinks.open(), sinks.job()
    deliver(sink, job, sinks.ticket(0), [batch_of(0, 2, "a")])
    move, remove_pointers = Folder.move, Generations._remove_pointers

    def cancelled_meanwhile(*rename: Any) -> None:
        def after_the_rename(*arguments: Any) -> None:
            monkeypatch.setattr(Generations, "_remove_pointers", remove_pointers)
            move(*rename)
            remove_pointers(*arguments)

        monkeypatch.setattr(Generations, "_remove_pointers", after_the_rename)
        sinks.open().discard(job)

    monkeypatch.setattr(Folder, "move", cancelled_meanwhile)
    sink.seal(job)
    assert visible(base(sinks)) == ["public.orders/slice-00000.parquet"]


def test_a_discarded_transfer_keeps_published_dates(dates: ParquetTransfer) -> None:
    sink, job = dates.open(), dates.job()
    deliver(sink, job, dates.ticket(0), [batch_of(0, 2, "a")])
    ticket = stage(sink, job, dates.ticket(1))
    sink.write(job, ticket, SCHEMA, iter([batch_of(1, 2, "a")]))
    sink.discard(job)
    files = [str(f.relative_to(base(dates))) for f in base(dates).rglob("*") if f.is_file()]
    assert files == ["orders/date=2024-02-28/data.parquet"]


def test_a_store_made_anew_writes_over_what_an_older_one_left(dates: ParquetTransfer) -> None:
    sink = dates.open()
    deliver(sink, dates.job(), dates.ticket(attempt=5, fence=9), [batch_of(0, 2, "old")])
    anew = dates.job(database_id="99999999-9999-4999-8999-999999999999")
    deliver(sink, anew, dates.ticket(attempt=1, fence=1), [batch_of(0, 2, "new")])
    assert {note for _, note in dates.rows()} == {"new"}


def test_another_format_replaces_the_date_too(dates: ParquetTransfer) -> None:
    deliver(dates.open(), dates.job(), dates.ticket(), [batch_of(0, 2, "a")])
    other = dates.open({"path": "exports/shop", "format": "jsonl"})
    deliver(other, dates.job(), dates.ticket(attempt=2), [batch_of(0, 2, "a")])
    assert visible(base(dates)) == ["orders/date=2024-02-28/data.jsonl"]


def test_publishing_goes_on_past_a_slice_that_was_taken_over(dates: ParquetTransfer) -> None:
    sink, job = dates.open(), dates.job()
    tickets = [stage(sink, job, dates.ticket(index)) for index in range(2)]
    receipts = [
        receipt_of(t, sink.write(job, t, SCHEMA, iter([batch_of(t.index, 1, "a")])))
        for t in tickets
    ]
    stage(sink, job, dates.ticket(0, attempt=2))
    with pytest.raises(Superseded, match="newer attempt"):
        sink.publish(job, list(zip(tickets, receipts, strict=True)))
    assert visible(base(dates)) == ["orders/date=2024-02-29/data.parquet"]


@pytest.mark.parametrize(
    "path",
    ["/etc", "../other", "a/../../b", "", "a//b", ".", "_hidden/x", "a/.b", "a\x00b", "a\nb"],
)
def test_a_path_out_of_the_teams_root_is_refused(path: str) -> None:
    with pytest.raises(ValidationError):
        FilesOptions(path=path)


@pytest.mark.parametrize("planted", ["exports", "exports/shop", "exports/shop/orders"])
def test_a_planted_link_leads_nowhere(dates: ParquetTransfer, tmp_path: Path, planted: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    link = dates.folder / "files" / "1" / planted
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    with pytest.raises(SinkRefused, match="a file or a link"):
        deliver(dates.open(), dates.job(), dates.ticket(), [batch_of(0, 1, "a")])
    assert list(outside.iterdir()) == []


def test_a_link_planted_between_staging_and_writing_leads_nowhere(
    dates: ParquetTransfer, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    sink, job = dates.open(), dates.job()
    ticket = stage(sink, job, dates.ticket())
    assert ticket.staging is not None
    staging = dates.folder / "files" / "1" / ticket.staging
    staging.rmdir()
    staging.symlink_to(outside)
    with pytest.raises(SinkRefused):
        sink.write(job, ticket, SCHEMA, iter([batch_of(0, 1, "a")]))
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("table", ["../../x", "a/b", "..", ".", "_x", "%2e%2e"])
def test_a_hostile_table_name_stays_one_folder(dates: ParquetTransfer, table: str) -> None:
    job = dates.job(destination_table=table)
    deliver(dates.open(), job, dates.ticket(), [batch_of(0, 1, "a")])
    (folder,) = base(dates).iterdir()
    assert not folder.name.startswith(("_", "."))
    assert (folder / "date=2024-02-28" / "data.parquet").is_file()


def test_something_else_at_the_sets_place_is_left_alone(sinks: ParquetSink) -> None:
    place = base(sinks) / "public.orders"
    place.mkdir(parents=True)
    (place / "precious.txt").write_text("kept")
    with pytest.raises(SinkRefused, match="was not made by refill"):
        sinks.open().prepare(sinks.job(), SCHEMA)
    assert (place / "precious.txt").read_text() == "kept"


def test_a_root_that_tasks_cannot_see_is_named(dates: ParquetTransfer) -> None:
    ticket = stage(dates.open(), dates.job(), dates.ticket())
    elsewhere = FilesSink(
        FilesOptions(path="exports/shop"), Context(team_id=1, files_root="/nowhere/files")
    )
    with pytest.raises(SinkRefused, match="must be a folder that all machines share"):
        elsewhere.write(dates.job(), ticket, SCHEMA, iter([batch_of(0, 1, "a")]))


def test_a_root_that_may_not_be_written_is_refused(as_nobody: Path) -> None:
    context = Context(team_id=1, files_root=str(as_nobody / "files"))
    with pytest.raises(SinkRefused, match="right to write there"):
        FilesSink(FilesOptions(path="exports"), context).test()


@needs_root
def test_a_full_disk_is_worth_another_try_and_shows_nothing_half(
    dates: ParquetTransfer, small_disk: Path
) -> None:
    context = Context(team_id=1, files_root=str(small_disk / "files"))
    sink: Sink = FilesSink(FilesOptions(path="exports/shop"), context)
    job, ticket = dates.job(), dates.ticket()
    deliver(sink, job, ticket, [batch_of(0, 1, "before")])
    noise = [os.urandom(500).hex() for _ in range(4000)]
    ids = list(range(1, 4001))
    day = [date(2024, 2, 28)] * 4000
    big = pa.RecordBatch.from_pydict({"id": ids, "note": noise, "day": day}, schema=SCHEMA)
    with pytest.raises(SinkUnavailable, match="no room to write files path 'exports/shop'"):
        deliver(sink, job, dates.ticket(attempt=2), [big])
    found = pq.ParquetFile(
        small_disk / "files/1/exports/shop/orders/date=2024-02-28/data.parquet"
    ).read()
    assert found.column("note").to_pylist() == ["before"]
    deliver(sink, job, dates.ticket(attempt=3), [batch_of(0, 2, "after")])


def test_a_long_file_has_several_row_groups_and_its_columns_keep_their_forms(
    sinks: ParquetSink,
) -> None:
    sink, job = sinks.open(), sinks.job()
    batches = [batch_of(0, 50_000, "same", first=1 + 50_000 * n) for n in range(6)]
    deliver(sink, job, sinks.ticket(), batches)
    sink.seal(job)
    file = pq.ParquetFile(base(sinks) / "public.orders/slice-00000.parquet")
    assert file.metadata.num_rows == 300_000
    assert 2 <= file.metadata.num_row_groups <= 4
    assert file.schema_arrow.field("note").metadata[b"pg_type"] == b"text"
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_many_dates_are_staged_and_published_together(dates: ParquetTransfer) -> None:
    sink = dates.open()
    days = [date(2010, 1, 1) + timedelta(days=n) for n in range(64)]
    job = dates.job(dates=tuple(days))
    tickets = [_dated(dates, job, index, day) for index, day in enumerate(days)]
    sink.prepare(job, SCHEMA)
    staged = [
        t.model_copy(update={"staging": place})
        for t, place in zip(tickets, sink.stage(job, tickets), strict=True)
    ]
    done: list[tuple[Ticket, Any]] = [
        (t, receipt_of(t, sink.write(job, t, SCHEMA, iter([batch_of(0, 1, "a")])))) for t in staged
    ]
    assert visible(base(dates)) == []
    sink.publish(job, done)
    assert len(visible(base(dates))) == 64


def _dated(bed: SinkBed, job: Job, index: int, day: date) -> Ticket:
    assert job.spec.kind is Kind.TRANSFER
    ticket = bed.ticket(index)
    return ticket.model_copy(
        update={
            "extent": ticket.extent.model_copy(update={"date": day}),
            "target": f"destination:1/orders/{day.isoformat()}",
        }
    )
