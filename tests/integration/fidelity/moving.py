"""A table through Spark to a sink, by the steps of the worker and without its store."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from refill.connectors.kit.contract import Connector, Context, Job
from refill.domain.pipeline import Kind
from refill.domain.slice import Outcome, Receipt, Ticket
from refill.domain.spec import SinkSpec
from refill.domain.table import Table
from refill.packs.assignment import Assignment
from refill.planning.plan import PlanSettings
from refill.spark.engine import SparkEngine
from tests.specs import build_spec, slices_of

# so small that even a table of ten rows has several slices
TINY_SLICES = PlanSettings(slots=2, smallest_slice_rows=3, rows_per_slice=7)


def postgres_options(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    return {
        "hostname": parts.hostname,
        "port": parts.port,
        "database": parts.path.lstrip("/"),
        "username": parts.username,
        "password": parts.password,
    }


class Mover:
    """Reads one database; moves its tables wherever it is told."""

    def __init__(
        self, engine: SparkEngine, connectors: Mapping[str, Connector], url: str, root: Path
    ) -> None:
        self._engine = engine
        self._connectors = connectors
        self._options = postgres_options(url)
        self._context = Context(team_id=1, files_root=str(root))
        self._moved = 0
        opening = connectors["postgres"].open_source
        assert opening is not None
        model = connectors["postgres"].options_model
        self.source = opening(model.model_validate(self._options), self._context)

    def move(
        self, table: Table, sink_type: str, options: Mapping[str, Any], **more: Any
    ) -> list[Receipt]:
        """Every slice delivered and published, the set sealed. `more`: of the spec."""
        self._moved += 1
        connector = self._connectors[sink_type]
        spec = build_spec(
            kind=Kind.SINK,
            database_id="d",
            database_type="postgres",
            database_name="d",
            table=table,
            columns=tuple(column.name for column in table.columns),
            sort_columns=table.key,
            sink_type=sink_type,
            sink_options=options,
            sink_id=f"sink-{sink_type}",
            **more,
        )
        job = Job(backfill_id=self._moved, backfill_uid=str(uuid4()), spec=spec)
        opening = connector.open_sink
        assert opening is not None
        sink = opening(connector.options_model.model_validate(options), self._context)
        try:
            sink.prepare(job, self.source.schema(spec.read))
            tickets = self._tickets(job.sink_spec)
            places = sink.stage(job, tickets)
            tickets = [
                ticket.model_copy(update={"staging": place})
                for ticket, place in zip(tickets, places, strict=True)
            ]
            receipts = self._engine.run(
                Assignment(
                    pack_id=uuid4().hex,
                    job=job,
                    source_type="postgres",
                    source_options=self._options,
                    sink_type=sink_type,
                    sink_options=options,
                    context=self._context,
                    tickets=tuple(tickets),
                    seconds_budget=60,
                )
            )
            failed = [r.fault for r in receipts if r.outcome is not Outcome.DONE]
            assert not failed, failed
            sink.publish(job, list(zip(tickets, receipts, strict=True)))
            sink.seal(job)
            return receipts
        finally:
            sink.close()
            self.source.close()  # it holds a table without a key as it is: nobody could drop it

    def _tickets(self, spec: SinkSpec) -> list[Ticket]:
        self.source.check(spec.read)
        return [
            Ticket(
                slice_id=number + 1,
                index=number,
                extent=extent,
                attempt=1,
                target=f"{spec.sink_id}/{spec.read.name}",
                fence=self._moved,
                nonce=uuid4().hex,
            )
            for number, extent in enumerate(slices_of(self.source, spec.read, TINY_SLICES))
        ]
