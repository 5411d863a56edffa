"""The SQL lane's books, without Spark."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from refill.connectors.kit.contract import Job
from refill.domain.slice import Outcome, Receipt, Ticket
from refill.spark.lane_sql import SqlLane
from tests.integration.spark.assignments import key_ticket, make_assignment, make_spec
from tests.sheets import SHEETS


class NoSpark:
    def new_session(self) -> None:
        return None

    @contextmanager
    def tagged(self, session: None, tag: str) -> Iterator[None]:
        yield


def test_each_slice_of_a_pack_may_reject_what_the_earlier_ones_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed: list[int] = []

    def write(self: SqlLane, session: None, ticket: Ticket, schema: Any, job: Job) -> Receipt:
        allowed.append(job.spec.max_rejects)
        return Receipt(
            slice_id=ticket.slice_id, attempt=1, outcome=Outcome.DONE, rows_read=2, rows_rejected=2
        )

    monkeypatch.setattr(SqlLane, "_run", write)
    spec = make_spec(transform="select id from source", max_rejects=3)
    order = make_assignment(tmp_path, [key_ticket(n) for n in (1, 2, 3)], spec=spec)
    link: Any = NoSpark()
    receipts = SqlLane(link, order, SHEETS, SHEETS, lambda: False).run()
    assert len(receipts) == 3
    assert allowed == [3, 1, 0]
