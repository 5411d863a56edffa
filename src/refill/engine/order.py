"""What the worker hands to the engine: everything that a task needs, and nothing else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from refill.connectors.contract import Context, Job
from refill.domain.pipeline import Spec
from refill.domain.slice import Receipt, Ticket

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOrder:
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
    # called inside the task with "mid_read" and "mid_write" and the slice's id: for fault tests
    on_step: Callable[[str, int], None] | None = None

    def __repr__(self) -> str:
        return f"WorkOrder(pack_id={self.pack_id!r}, slices={len(self.tickets)})"


class Engine(Protocol):
    """Runs packs. One object per worker, used from all its slots."""

    def start(self) -> None:
        """Brings Spark up; EngineUnavailable or Misconfigured when it cannot."""

    def run(self, order: WorkOrder) -> list[Receipt]:
        """Blocks until the pack is done; one receipt per ticket. A failing slice is a receipt with
        a fault, never an exception; EngineUnavailable when Spark itself lost the job."""

    def cancel(self, pack_id: str) -> None:
        """From another thread: stops the job, its tasks included."""

    def check_transform(
        self, spec: Spec, source_options: Mapping[str, Any], context: Context
    ) -> "pa.Schema":
        """Spark's own word on the spec's SQL, at planning: TransformFailed with its sentence.
        Returns the schema of what the SQL delivers."""

    @property
    def cores(self) -> int:
        """How many packs can really run side by side."""

    def alive(self) -> bool:
        """False once the JVM is gone for good: the worker then ends, to be started anew."""

    def keep_warm(self) -> None:
        """Touches every core's Python worker, which Spark ends after a minute without work."""

    def stop(self) -> None: ...
