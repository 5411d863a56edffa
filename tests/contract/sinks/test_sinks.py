"""What every sink promises, on the real system. A bed in `beds/` is all that a new sink adds."""

from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa
import pytest

from refill.connectors.kit.contract import Guarantee, Job, Sink, Written
from refill.connectors.kit.registry import load_connectors
from refill.domain.errors import SinkRefused, SinkUnavailable, Superseded
from refill.domain.slice import Ticket
from tests.contract.beds import for_beds
from tests.contract.sinks.bed import (
    SCHEMA,
    Seen,
    SinkBed,
    batch_of,
    can_be_unreachable,
    can_refuse,
    deliver,
    fences,
    receipt_of,
    replaces,
    seen,
    stage,
    takes_dates,
)
from tests.contract.sinks.death import die_while_writing


def assert_delivered(bed: SinkBed, expected: list[Seen]) -> None:
    """Each row once where the sink says so, else at least once; nothing that was never sent."""
    if bed.promise is Guarantee.AT_LEAST_ONCE:
        assert set(bed.rows()) == set(expected)
    else:
        assert sorted(bed.rows()) == sorted(expected)


def test_a_usable_sink_says_so(bed: SinkBed) -> None:
    sink = bed.open()
    sink.test()
    sink.close()


def test_a_slice_is_delivered_whole(bed: SinkBed) -> None:
    job, sink = bed.job(), bed.open()
    batches = [batch_of(0, 2, "a"), batch_of(0, 3, "a", first=3)]
    written = deliver(sink, job, bed.ticket(), batches)
    sink.seal(job)
    assert written.rows_delivered == 5
    assert written.rows_rejected == 0
    assert written.bytes_written > 0
    assert_delivered(bed, seen(0, 5, "a"))
    sink.close()


def test_several_slices_stand_beside_each_other(bed: SinkBed) -> None:
    job, sink = bed.job(), bed.open()
    tickets = [bed.ticket(0), bed.ticket(1)]
    sink.prepare(job, SCHEMA)
    staged = [
        ticket.model_copy(update={"staging": place})
        for ticket, place in zip(tickets, sink.stage(job, tickets), strict=True)
    ]
    receipts = [
        receipt_of(t, sink.write(job, t, SCHEMA, iter([batch_of(t.index, 3, "a")]))) for t in staged
    ]
    sink.publish(job, list(zip(staged, receipts, strict=True)))
    sink.seal(job)
    assert_delivered(bed, seen(0, 3, "a") + seen(1, 3, "a"))
    sink.close()


def test_an_empty_slice_delivers_nothing_and_harms_nothing(bed: SinkBed) -> None:
    job, sink = bed.job(), bed.open()
    deliver(sink, job, bed.ticket(0), [batch_of(0, 2, "a")])
    written = deliver(sink, job, bed.ticket(1), [])
    assert written.rows_delivered == 0
    deliver(sink, job, bed.ticket(2), [batch_of(2, 0, "a")])
    sink.seal(job)
    assert_delivered(bed, seen(0, 2, "a"))
    sink.close()


def test_a_slice_delivered_again_by_a_newer_attempt_shows_no_repeats(bed: SinkBed) -> None:
    job, sink = bed.job(), bed.open()
    deliver(sink, job, bed.ticket(attempt=1), [batch_of(0, 4, "a")])
    try:
        deliver(sink, job, bed.ticket(attempt=2), [batch_of(0, 4, "a")])
    except Superseded:
        # it may also find that the first attempt's delivery stands
        assert bed.promise is Guarantee.EXACTLY_ONCE
    sink.seal(job)
    assert_delivered(bed, seen(0, 4, "a"))
    sink.close()


def test_publishing_and_sealing_again_changes_nothing(bed: SinkBed) -> None:
    job, sink = bed.job(), bed.open()
    ticket = stage(sink, job, bed.ticket())
    receipt = receipt_of(ticket, sink.write(job, ticket, SCHEMA, iter([batch_of(0, 4, "a")])))
    sink.publish(job, [(ticket, receipt)])
    sink.publish(job, [(ticket, receipt)])
    sink.seal(job)
    sink.seal(job)
    assert_delivered(bed, seen(0, 4, "a"))
    sink.close()


def test_a_task_killed_before_its_commit_leaves_nothing_half_visible(bed: SinkBed) -> None:
    job, sink = bed.job(), bed.open()
    ticket = stage(sink, job, bed.ticket(attempt=1))
    die_while_writing(
        bed.connector_type,
        bed.options(),
        bed.context,
        job,
        ticket,
        [batch_of(0, 2, "a"), batch_of(0, 2, "a", first=3)],
    )
    if bed.fences:
        assert bed.rows() == []
    deliver(sink, job, bed.ticket(attempt=2), [batch_of(0, 4, "a")])
    sink.seal(job)
    assert_delivered(bed, seen(0, 4, "a"))
    sink.close()


def test_a_source_that_fails_mid_slice_leaves_nothing_half_visible(bed: SinkBed) -> None:
    job, sink = bed.job(), bed.open()

    class SourceLost(Exception):
        pass

    def failing() -> Iterator[pa.RecordBatch]:
        yield batch_of(0, 2, "a")
        raise SourceLost

    ticket = stage(sink, job, bed.ticket(attempt=1))
    with pytest.raises(SourceLost):
        sink.write(job, ticket, SCHEMA, failing())
    if bed.fences:
        assert bed.rows() == []
    deliver(sink, job, bed.ticket(attempt=2), [batch_of(0, 4, "a")])
    sink.seal(job)
    assert_delivered(bed, seen(0, 4, "a"))
    sink.close()


def test_a_receipt_lost_after_the_commit_is_made_good_by_the_next_attempt(bed: SinkBed) -> None:
    job, sink = bed.job(), bed.open()
    ticket = stage(sink, job, bed.ticket(attempt=1))
    sink.write(job, ticket, SCHEMA, iter([batch_of(0, 4, "a")]))
    sink.close()
    again = bed.open()
    deliver(again, job, bed.ticket(attempt=2), [batch_of(0, 4, "a")])
    again.seal(job)
    assert_delivered(bed, seen(0, 4, "a"))
    again.close()


def test_a_zombie_that_wakes_up_mid_slice_changes_nothing(bed: SinkBed) -> None:
    job, zombie, sink = bed.job(), bed.open(), bed.open()

    def overtaken() -> Iterator[pa.RecordBatch]:
        yield batch_of(0, 2, "old")
        deliver(sink, job, bed.ticket(attempt=2), [batch_of(0, 4, "new")])
        yield batch_of(0, 2, "old", first=3)

    ticket = stage(zombie, job, bed.ticket(attempt=1))
    if bed.fences:
        with pytest.raises(Superseded):
            _write_and_publish(zombie, job, ticket, overtaken())
        sink.seal(job)
        assert_delivered(bed, seen(0, 4, "new"))
    else:
        _write_and_publish(zombie, job, ticket, overtaken())
        assert {key for key, _ in bed.rows()} == {key for key, _ in seen(0, 4, "new")}
    zombie.close()
    sink.close()


@for_beds(fences)
def test_a_zombie_that_begins_after_a_newer_attempt_ended_changes_nothing(bed: SinkBed) -> None:
    job, zombie, sink = bed.job(), bed.open(), bed.open()
    early = stage(zombie, job, bed.ticket(attempt=1))
    deliver(sink, job, bed.ticket(attempt=2), [batch_of(0, 4, "new")])
    with pytest.raises(Superseded):
        _write_and_publish(zombie, job, early, iter([batch_of(0, 4, "old")]))
    with pytest.raises(Superseded):
        deliver(zombie, job, bed.ticket(attempt=1), [batch_of(0, 4, "older")])
    sink.seal(job)
    assert_delivered(bed, seen(0, 4, "new"))
    zombie.close()
    sink.close()


@for_beds(fences)
def test_a_zombie_that_stages_late_takes_nothing_away(bed: SinkBed) -> None:
    job, zombie, sink = bed.job(), bed.open(), bed.open()
    ticket = stage(sink, job, bed.ticket(attempt=2))
    receipt = receipt_of(ticket, sink.write(job, ticket, SCHEMA, iter([batch_of(0, 4, "new")])))
    stage(zombie, job, bed.ticket(attempt=1))
    sink.publish(job, [(ticket, receipt)])
    sink.seal(job)
    assert_delivered(bed, seen(0, 4, "new"))
    zombie.close()
    sink.close()


@for_beds(fences)
def test_a_zombie_that_publishes_late_changes_nothing(bed: SinkBed) -> None:
    job, zombie, sink = bed.job(), bed.open(), bed.open()
    ticket = stage(zombie, job, bed.ticket(attempt=1))
    receipt = receipt_of(ticket, zombie.write(job, ticket, SCHEMA, iter([batch_of(0, 4, "a")])))
    deliver(sink, job, bed.ticket(attempt=2), [batch_of(0, 4, "a")])
    with suppress(Superseded):  # a sink that commits in the task has nothing to publish
        zombie.publish(job, [(ticket, receipt)])
    sink.seal(job)
    assert_delivered(bed, seen(0, 4, "a"))
    zombie.close()
    sink.close()


@for_beds(takes_dates)
def test_a_date_that_has_no_rows_any_more_is_emptied(bed: SinkBed) -> None:
    earlier, later, sink = bed.job(backfill_id=1), bed.job(backfill_id=2), bed.open()
    for index in range(2):
        deliver(sink, earlier, bed.ticket(index, fence=1), [batch_of(index, 3, "old")])
    sink.seal(earlier)
    deliver(sink, later, bed.ticket(0, fence=2), [])
    sink.seal(later)
    assert_delivered(bed, seen(1, 3, "old"))
    sink.close()


@for_beds(replaces)
def test_a_zombie_of_an_earlier_backfill_changes_nothing(bed: SinkBed) -> None:
    earlier, later = bed.job(backfill_id=1), bed.job(backfill_id=2)
    zombie, sink = bed.open(), bed.open()
    ticket = stage(zombie, earlier, bed.ticket(attempt=7, fence=1))
    deliver(sink, later, bed.ticket(attempt=1, fence=2), [batch_of(0, 4, "new")])
    sink.seal(later)

    def go_on() -> None:
        _write_and_publish(zombie, earlier, ticket, iter([batch_of(0, 4, "old")]))
        zombie.seal(earlier)

    with pytest.raises((Superseded, SinkRefused)):
        go_on()
    assert_delivered(bed, seen(0, 4, "new"))
    zombie.close()
    sink.close()


def test_a_task_that_spark_runs_twice_is_delivered_once(bed: SinkBed) -> None:
    job, first, second = bed.job(), bed.open(), bed.open()
    ticket = stage(first, job, bed.ticket(attempt=1))
    twin = ticket.model_copy(update={"nonce": bed.ticket().nonce})
    receipts = []
    for sink, execution in ((first, ticket), (second, twin)):
        try:
            written = sink.write(job, execution, SCHEMA, iter([batch_of(0, 4, "a")]))
        except Superseded:
            continue
        receipts.append((execution, receipt_of(execution, written)))
    first.publish(job, receipts[-1:])
    first.seal(job)
    assert_delivered(bed, seen(0, 4, "a"))
    first.close()
    second.close()


@for_beds(can_be_unreachable)
def test_an_unreachable_system_is_worth_another_try(bed: SinkBed) -> None:
    sink = bed.open(bed.unreachable())
    with pytest.raises(SinkUnavailable):
        sink.test()
    with pytest.raises(SinkUnavailable):
        deliver(sink, bed.job(), bed.ticket(), [batch_of(0, 1, "a")])
    sink.close()


@for_beds(can_refuse)
def test_a_refusal_is_not_tried_again(bed: SinkBed) -> None:
    sink = bed.open(bed.refused())
    with pytest.raises(SinkRefused):
        deliver(sink, bed.job(), bed.ticket(), [batch_of(0, 1, "a")])
    sink.close()


def test_a_sink_holds_no_more_than_a_few_batches_in_memory(bed: SinkBed) -> None:
    job, sink = bed.job(), bed.open()
    note = "x" * 10_000
    held: list[int] = []
    before = pa.total_allocated_bytes()

    def batches() -> Iterator[pa.RecordBatch]:
        for n in range(60):
            held.append(pa.total_allocated_bytes() - before)
            yield batch_of(0, 100, note, first=1 + 100 * n)

    # keys of one slice end at 1000 in this suite, so they go on into its neighbours' range
    ticket = stage(sink, job, bed.ticket())
    with bed.slowed():
        written = sink.write(job, ticket, SCHEMA, batches())
    assert written.rows_delivered == 6000
    one = 100 * 10_000
    assert max(held) < 40 * one, f"{max(held) / one:.0f} batches were held at once"
    sink.close()


def test_discarding_leaves_what_consumers_see(bed: SinkBed) -> None:
    job, sink = bed.job(), bed.open()
    deliver(sink, job, bed.ticket(0), [batch_of(0, 2, "a")])
    if load_connectors()[bed.connector_type].seals:
        sink.seal(job)
    other = bed.job(backfill_id=2)
    ticket = stage(sink, other, bed.ticket(1, fence=2))
    assert sink.write(other, ticket, SCHEMA, iter([])).rows_delivered == 0
    sink.discard(other)
    assert_delivered(bed, seen(0, 2, "a"))
    sink.close()


def test_counters_tell_read_from_delivered(bed: SinkBed) -> None:
    job, sink = bed.job(), bed.open()
    written = deliver(sink, job, bed.ticket(), [batch_of(0, 7, "a")])
    assert isinstance(written, Written)
    assert written.rows_delivered + written.rows_rejected == 7
    assert len(written.rejects) == written.rows_rejected
    sink.close()


def _write_and_publish(
    sink: Sink, job: Job, ticket: Ticket, batches: Iterator[pa.RecordBatch]
) -> None:
    written = sink.write(job, ticket, SCHEMA, batches)
    sink.publish(job, [(ticket, receipt_of(ticket, written))])
