"""What another worker, in another process, does meanwhile: seen from here, only in the store."""

from refill.domain.backfill import Backfill
from refill.domain.retry import RetryPolicy
from refill.domain.slice import KeyRange, Outcome, Receipt
from refill.store.records import Pack, PackLimits, PlannedSlice
from tests.contract.worker.bed import ROWS, SLICES, Bed

SECONDS = 60.0


def claim_all(bed: Bed, backfill: Backfill, lease_seconds: float = SECONDS) -> list[Pack]:
    """Plans the backfill and claims every slice of it."""
    claim = bed.store.claim_plan("elsewhere", SECONDS)
    assert claim is not None
    assert claim.backfill.id == backfill.id
    slices = [
        PlannedSlice(
            extent=KeyRange(lower=(str(ROWS * number),), upper=(str(ROWS * (number + 1)),)),
            target=f"sink:{backfill.spec.sink_id}/{backfill.spec.read.name}",
        )
        for number in range(SLICES)
    ]
    bed.store.save_plan(claim, slices, rows_estimated=0)
    packs = []
    while pack := bed.store.claim_pack("elsewhere", PackLimits(slots=1), lease_seconds):
        packs.append(pack)
    return packs


def deliver(bed: Bed, packs: list[Pack]) -> None:
    """Into the system; the store has not heard of it yet."""
    for claimed in (each for pack in packs for each in pack.slices):
        first = ROWS * claimed.slice.index + 1
        rows = [{"id": number} for number in range(first, first + ROWS)]
        bed.memory.delivered[claimed.slice.id, claimed.slice.attempt] = rows


def finish(bed: Bed, packs: list[Pack]) -> None:
    for pack in packs:
        receipts = [
            Receipt(
                slice_id=claimed.slice.id,
                attempt=claimed.slice.attempt,
                outcome=Outcome.DONE,
                rows_read=ROWS,
                rows_delivered=ROWS,
            )
            for claimed in pack.slices
        ]
        bed.store.finish_slices(pack.backfill.id, receipts, RetryPolicy())


def deliver_and_vanish(bed: Bed, backfill: Backfill) -> None:
    """Its leases run out, and nobody hears of what it delivered."""
    deliver(bed, claim_all(bed, backfill, lease_seconds=0.0))
    swept = bed.store.sweep(RetryPolicy(base_seconds=SECONDS))
    assert swept.leases_lost == SLICES
