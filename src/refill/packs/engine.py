"""What runs packs, as the worker sees it: Spark, or this very process."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from refill.connectors.kit.contract import Context
from refill.domain.slice import Receipt
from refill.domain.spec import Spec
from refill.packs.assignment import Assignment

if TYPE_CHECKING:
    import pyarrow as pa


class Engine(Protocol):
    """Runs packs. One object per worker, used from all its slots."""

    def start(self) -> None:
        """Brings Spark up; EngineUnavailable or Misconfigured when it cannot."""

    def run(self, assignment: Assignment) -> list[Receipt]:
        """Blocks until the pack is done; one receipt per ticket. A failing slice is a receipt with
        a fault, never an exception; EngineUnavailable when Spark itself lost the job."""

    def cancel(self, pack_id: str) -> None:
        """From another thread: stops the job, its tasks included."""

    def progress(self, pack_id: str) -> int | None:
        """A number that grows as long as the pack gets on; None: nobody here can tell, and the
        pack's own process sees to it."""

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
