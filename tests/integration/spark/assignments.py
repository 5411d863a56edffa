"""Orders for the engine's tests, with defaults."""

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from refill.connectors.kit.contract import Context, Job
from refill.domain.pipeline import Kind
from refill.domain.slice import Dated, KeyRange, Ticket
from refill.domain.spec import Spec
from refill.packs.assignment import Assignment
from tests.sheets import TABLE
from tests.specs import build_spec

DAY = date(2024, 1, 1)


def make_spec(**changes: Any) -> Spec:
    return build_spec(
        **{
            "kind": Kind.TRANSFER,
            "database_id": "d",
            "database_type": "sheets",
            "database_name": "sheets",
            "table": TABLE,
            "columns": tuple(column.name for column in TABLE.columns),
            "sink_type": "sheets",
            "sink_options": {},
            **changes,
        }
    )


def make_ticket(number: int, **changes: Any) -> Ticket:
    return Ticket(
        **{
            "slice_id": number,
            "index": number,
            "extent": Dated(date=DAY + timedelta(days=number)),
            "attempt": 1,
            "target": f"t/{number}",
            "fence": 1,
            "nonce": uuid4().hex,
            **changes,
        }
    )


def key_ticket(number: int) -> Ticket:
    return make_ticket(number, extent=KeyRange(lower=(str(number),), upper=(str(number + 1),)))


def make_assignment(
    path: Path,
    tickets: Sequence[Ticket],
    *,
    spec: Spec | None = None,
    options: dict[str, Any] | None = None,
    **changes: Any,
) -> Assignment:
    chosen = {"path": str(path), **(options or {})}
    return Assignment(
        **{
            "pack_id": uuid4().hex,
            "job": Job(backfill_id=1, backfill_uid="u", spec=spec or make_spec()),
            "source_type": "sheets",
            "source_options": chosen,
            "sink_type": "sheets",
            "sink_options": chosen,
            "context": Context(team_id=1, files_root=str(path)),
            "tickets": tuple(tickets),
            **changes,
        }
    )
