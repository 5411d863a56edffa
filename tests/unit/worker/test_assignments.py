"""What a pack's task is given of its backfill."""

from datetime import UTC, datetime

import pytest

from refill.connectors.kit.contract import Connector, Context, Options
from refill.domain.backfill import Backfill
from refill.domain.pipeline import Kind
from refill.store.records import Pack
from refill.worker.assignments import TaskLimits, assign
from refill.worker.ends import Ends
from tests.specs import build_spec

NOW = datetime(2024, 1, 1, tzinfo=UTC)
ANY = Connector(type="any", title="Any", options_model=Options)
ENDS = Ends(
    source=ANY,
    source_options={},
    sink=ANY,
    sink_options={},
    context=Context(team_id=1, files_root="/nowhere"),
)


@pytest.mark.parametrize(("rejected", "left"), [(0, 5), (3, 2), (5, 0), (9, 0)])
def test_a_pack_may_reject_what_its_backfill_has_left(rejected: int, left: int) -> None:
    pack = Pack(id="p", backfill=_backfill(max_rejects=5), rows_rejected=rejected, slices=())
    assert assign(pack, ENDS, [], limits=TaskLimits()).job.spec.max_rejects == left


def _backfill(max_rejects: int) -> Backfill:
    return Backfill(
        id=5,
        uid="u",
        team_id=1,
        kind=Kind.SINK,
        pipeline_id="s",
        pipeline_name="s",
        spec=build_spec(max_rejects=max_rejects),
        created_at=NOW,
        updated_at=NOW,
    )
