"""The receipt of a slice: its books must balance."""

from refill.connectors.kit.contract import Written
from refill.domain.errors import TooManyRejects
from refill.domain.slice import REJECTS_KEPT, Fault, Outcome, Receipt, Ticket
from refill.packs.faults import fault_of


def receipt_of(
    ticket: Ticket,
    written: Written,
    *,
    rows_read: int,
    rows_filtered: int,
    seconds: float,
    max_rejects: int,
    source_ended: bool = True,
) -> Receipt:
    """The books must balance: a sink that stopped half-way is a failure, not a delivery."""
    fault = None
    if written.delivered_before:
        # the sink took nothing: what an earlier execution delivered is what was read
        rows_read, rows_filtered = written.rows_delivered + written.rows_rejected, 0
        source_ended = True
    accounted = written.rows_delivered + written.rows_rejected + rows_filtered
    if not source_ended or accounted != rows_read:
        fault = Fault(
            code="unexpected",
            message=f"Of {rows_read} rows read the sink accounts for {accounted}; the slice is "
            "tried again.",
            transient=True,
        )
    elif written.rows_rejected > max_rejects and not written.delivered_before:
        # what stands already was within what was left when it was delivered
        fault = fault_of(
            TooManyRejects(
                f"{written.rows_rejected} rows could not be delivered and {max_rejects} may still "
                "be rejected; see the rejects, then mend the rows and retry, or raise max_rejects "
                "and start a new backfill."
            )
        )
    return Receipt(
        slice_id=ticket.slice_id,
        attempt=ticket.attempt,
        outcome=Outcome.FAILED if fault else Outcome.DONE,
        rows_read=rows_read,
        rows_delivered=written.rows_delivered,
        rows_filtered=rows_filtered,
        rows_rejected=written.rows_rejected,
        bytes_written=written.bytes_written,
        seconds=round(seconds, 6),
        staged=written.staged,
        rejects=written.rejects[:REJECTS_KEPT],
        fault=fault,
        extra=dict(written.extra),
    )
