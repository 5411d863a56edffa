"""From a claim of the store's to what a task needs: tickets drawn, a pack assigned."""

import dataclasses
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from refill.connectors.kit.contract import Job
from refill.domain.backfill import Backfill
from refill.domain.slice import Ticket
from refill.packs.assignment import Assignment
from refill.store.records import ClaimedSlice, Pack
from refill.worker.ends import Ends

PACK_SECONDS = 5.0  # no slice of a pack is begun after that


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLimits:
    """What the operator lets a slice take."""

    stall_seconds: float = 300.0
    max_row_bytes: int = 64 * 1024 * 1024


def draw_tickets(slices: Sequence[ClaimedSlice]) -> list[Ticket]:
    """One per claimed slice. Its nonce names what this one execution stages."""
    return [
        Ticket(
            slice_id=claimed.slice.id,
            index=claimed.slice.index,
            extent=claimed.slice.extent,
            attempt=claimed.slice.attempt,
            target=claimed.slice.target,
            fence=claimed.fence,
            nonce=secrets.token_hex(8),
        )
        for claimed in slices
    ]


def assign(
    pack: Pack,
    ends: Ends,
    tickets: Sequence[Ticket],
    *,
    limits: TaskLimits,
    on_step: Callable[[str, int], None] | None = None,
) -> Assignment:
    return Assignment(
        pack_id=pack.id,
        job=_job_of_pack(pack),
        source_type=ends.source.type,
        source_options=ends.source_options,
        sink_type=ends.sink.type,
        sink_options=ends.sink_options,
        context=ends.context,
        tickets=tuple(tickets),
        seconds_budget=PACK_SECONDS,
        max_rows_per_second=pack.backfill.spec.max_rows_per_second,
        stall_seconds=limits.stall_seconds,
        max_row_bytes=limits.max_row_bytes,
        on_step=on_step,
    )


def job_of(backfill: Backfill) -> Job:
    return Job(
        backfill_id=backfill.id,
        backfill_uid=backfill.uid,
        spec=backfill.spec,
    )


def _job_of_pack(pack: Pack) -> Job:
    """Rejects are allowed per backfill: what other slices used up is not there any more."""
    job = job_of(pack.backfill)
    # as of the claim: packs that run side by side each get all of it, and may overrun it together
    left = max(0, job.spec.max_rejects - pack.rows_rejected)
    if left == job.spec.max_rejects:
        return job
    return dataclasses.replace(job, spec=job.spec.model_copy(update={"max_rejects": left}))
