"""A table read by the real source and written by the real sink, without worker and Spark."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pyarrow as pa

from refill.connectors.kit.contract import Context, Job, Written
from refill.connectors.kit.registry import load_connectors
from refill.domain.pipeline import Kind
from refill.domain.slice import Extent, Ticket
from refill.domain.table import Table
from refill.worker.planner import target_of
from tests.specs import build_spec

CONTEXT = Context(team_id=1, files_root="/nowhere")


def options_of(url: str, **more: Any) -> dict[str, Any]:
    parts = urlsplit(url)
    return {
        "hostname": parts.hostname,
        "port": parts.port,
        "database": parts.path.removeprefix("/"),
        "username": parts.username,
        "password": parts.password,
        **more,
    }


def find_table(url: str, name: str, schema: str = "public") -> Table:
    source = open_source(url)
    table = source.find_table(schema, name)
    source.close()
    assert table is not None
    return table


def open_source(url: str) -> Any:
    connector = load_connectors()["postgres"]
    assert connector.open_source is not None
    return connector.open_source(connector.options_model.model_validate(options_of(url)), CONTEXT)


def open_sink(url: str, **more: Any) -> Any:
    connector = load_connectors()["postgres"]
    assert connector.open_sink is not None
    model = connector.options_model.model_validate(options_of(url, **more))
    return connector.open_sink(model, CONTEXT)


def job_of(table: Table, *, backfill_id: int = 1, **changes: Any) -> Job:
    sink = {"sort_columns": table.key, "sink_id": "22222222-2222-4222-8222-222222222222"}
    spec = build_spec(
        **{
            "database_id": "11111111-1111-4111-8111-111111111111",
            "database_name": "shop",
            "table": table,
            "columns": tuple(column.name for column in table.columns),
            "sink_type": "postgres",
            **(sink if changes.get("kind", Kind.SINK) is Kind.SINK else {}),
            **changes,
        }
    )
    return Job(backfill_id=backfill_id, backfill_uid=str(uuid4()), spec=spec)


def transfer_of(table: Table, date_column: str | None = "day", **changes: Any) -> Job:
    return job_of(
        table,
        kind=Kind.TRANSFER,
        **{"date_column": date_column, "destination_table": table.name, **changes},
    )


def ticket_of(
    job: Job, extent: Extent, *, attempt: int = 1, fence: int = 1, index: int = 0
) -> Ticket:
    spec = job.spec
    target = target_of(spec, extent)
    return Ticket(
        slice_id=index + 1,
        index=index,
        extent=extent,
        attempt=attempt,
        target=target,
        fence=fence,
        nonce=uuid4().hex[:12],
    )


@dataclass
class Pipe:
    """From one database to another."""

    source_url: str
    sink_url: str

    def run(
        self, job: Job, extent: Extent, *, attempt: int = 1, fence: int = 1, **sink_options: Any
    ) -> Written:
        source, sink = open_source(self.source_url), open_sink(self.sink_url, **sink_options)
        try:
            schema = source.schema(job.spec.read)
            sink.prepare(job, schema)
            batches: Iterator[pa.RecordBatch] = source.read(job.spec.read, extent)
            ticket = ticket_of(job, extent, attempt=attempt, fence=fence)
            written: Written = sink.write(job, ticket, schema, batches)
            return written
        finally:
            sink.close()
            source.close()
