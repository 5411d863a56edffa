"""The tables' indexes over several columns. Only what makes or migrates a schema needs them.

They are apart from the tables because a partial index loads the dialects of both databases.
"""

from sqlalchemy import Column, Index, text

from refill.store.tables import backfills, metadata, rejects, slices

__all__ = ["metadata"]


def _partial(name: str, *columns: Column[object], where: str) -> Index:
    return Index(name, *columns, sqlite_where=text(where), postgresql_where=text(where))


Index("ix_backfills_team_id_id", backfills.c.team_id, backfills.c.id)
Index(
    "ix_backfills_kind_pipeline_id_id",
    backfills.c.kind,
    backfills.c.pipeline_id,
    backfills.c.id,
)
_partial(
    "ix_backfills_active",
    backfills.c.status,
    backfills.c.last_claimed_at,
    where="status IN ('created', 'scheduled', 'running', 'paused')",
)
# not_before is there so that a claim finds what is due without touching the rows
Index(
    "ix_slices_claim",
    slices.c.backfill_id,
    slices.c.state,
    slices.c.index,
    slices.c.not_before,
)
# lease_until is in no index: a heartbeat touches it on every running slice
_partial(
    "ix_slices_running_target", slices.c.target, slices.c.backfill_id, where="state = 'running'"
)
_partial(
    "ix_slices_rejected",
    slices.c.backfill_id,
    slices.c.rows_rejected,
    where="rows_rejected > 0",
)
_partial("ix_slices_quarantined", slices.c.backfill_id, slices.c.state, where="suspicions > 1")
Index("ix_rejects_backfill_id_id", rejects.c.backfill_id, rejects.c.id)
