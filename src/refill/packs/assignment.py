"""What the worker hands to the engine: everything that a task needs, and nothing else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from refill.connectors.kit.contract import Context, Job
from refill.domain.slice import Ticket


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A pack with the options of its source and sink, secrets included: it travels inside a
    pickled closure, so that none of it shows in Spark's UI, plans or process arguments."""

    pack_id: str
    job: Job
    source_type: str
    source_options: Mapping[str, Any]
    sink_type: str
    sink_options: Mapping[str, Any]
    context: Context
    tickets: tuple[Ticket, ...]
    seconds_budget: float = 5.0  # no slice is begun after that
    max_rows_per_second: int | None = None
    stall_seconds: float = 300.0  # without a batch, and a slice is ended
    max_row_bytes: int = 64 * 1024 * 1024  # a larger one is rejected
    # called inside the task with "mid_read" and "mid_write" and the slice's id: for fault tests
    on_step: Callable[[str, int], None] | None = None

    def __repr__(self) -> str:
        return f"Assignment(pack_id={self.pack_id!r}, slices={len(self.tickets)})"
