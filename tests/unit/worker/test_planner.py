"""Planning that fails leaves nothing behind at the source."""

from types import SimpleNamespace
from typing import Any

import pytest

from refill.domain.errors import SinkRefused
from refill.worker.planner import Planner
from refill.worker.snapshots import Snapshots


class Held:
    closed = False

    def hold_snapshot(self, spec: Any) -> str:
        return "00000003-1"

    def close(self) -> None:
        self.closed = True


def test_a_snapshot_is_let_go_when_the_plan_fails_after_it() -> None:
    snapshots, source = Snapshots(), Held()

    def ends(backfill: Any) -> Any:
        snapshots.hold(claim, nothing, lambda: source)  # type: ignore[arg-type,return-value]
        raise SinkRefused("There is no such topic.")

    nothing: Any = None
    planner = Planner(
        store=nothing,
        ends=SimpleNamespace(find=ends),  # type: ignore[arg-type]
        pool=nothing,
        prepared=nothing,
        snapshots=snapshots,
        settings=nothing,
    )
    claim: Any = SimpleNamespace(backfill=SimpleNamespace(id=7), attempt=1)
    with pytest.raises(SinkRefused):
        planner.plan(claim, lambda save: save())
    assert snapshots.held() == []
    assert source.closed
