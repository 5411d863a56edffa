"""Errors as data: what a task found wrong, on its way to the store."""

import logging

from refill.domain.errors import (
    RefillError,
    Superseded,
    TerminalError,
    TooManyRejects,
    TransientError,
)
from refill.domain.slice import REJECTS_KEPT, Fault, Outcome, Receipt, Ticket
from refill.packs.missing import missing_module

log = logging.getLogger(__name__)


def without_work(ticket: Ticket, outcome: Outcome) -> Receipt:
    return Receipt(slice_id=ticket.slice_id, attempt=ticket.attempt, outcome=outcome)


def failure(ticket: Ticket, exc: Exception, seconds: float = 0.0) -> Receipt:
    if isinstance(exc, Superseded):
        return without_work(ticket, Outcome.SUPERSEDED)
    fault = fault_of(exc)
    if not isinstance(exc, RefillError):
        log.error(
            "slice %s failed unexpectedly",
            ticket.slice_id,
            exc_info=exc,
            extra={"action": "slice_failed", "slice_id": ticket.slice_id},
        )
    rejects, met = (exc.rejects, exc.count) if isinstance(exc, TooManyRejects) else ((), 0)
    return Receipt(
        slice_id=ticket.slice_id,
        attempt=ticket.attempt,
        outcome=Outcome.FAILED,
        rows_read=met,
        rows_rejected=met,
        seconds=round(seconds, 6),
        rejects=rejects[:REJECTS_KEPT],
        fault=fault,
    )


def fault_of(exc: BaseException) -> Fault:
    """An error as data. What we do not know may pass: it is tried again, and its text, which may
    hold anything, stays in the log. A module that is missing does not come by itself."""
    if not isinstance(exc, TerminalError) and (missing := missing_module(exc)) is not None:
        exc = missing
    if isinstance(exc, MemoryError):
        return Fault(
            code="out_of_memory",
            message="It needs more memory than a task has (REFILL_PYTHON_MEMORY); see how large "
            "its rows are, and what the SQL makes of them.",
            transient=False,
        )
    if isinstance(exc, TransientError):
        return Fault(
            code=exc.code,
            message=exc.message,
            transient=True,
            retry_after_seconds=exc.retry_after_seconds,
        )
    if isinstance(exc, RefillError):
        return Fault(code=exc.code, message=exc.message, transient=False)
    return Fault(
        code="unexpected",
        message=f"An unexpected {type(exc).__name__} stopped it; the worker's log has the details.",
        transient=True,
    )
