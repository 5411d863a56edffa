"""Whose turn it is: teams first, by what they have running; then their backfills."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from refill.domain.slice import SliceState
from refill.store.tables import among, backfills, slices


def in_turn(
    connection: sa.Connection, found: Sequence[Any], weights: Mapping[int, float]
) -> list[Any]:
    """Candidates of the team with the fewest running packs first, among equals of the one that
    waited longest; those of one team stay in their order. A team of weight 2 may have twice as
    many packs running before the others go first."""
    teams = {row.team_id for row in found}
    if len(teams) < 2:
        return list(found)
    running = _running(connection)

    def turn(row: Any) -> tuple[float, int]:
        share = running.get(row.team_id, 0) / weights.get(row.team_id, 1.0)
        return share, row.claimed_at

    return sorted(found, key=turn)


def _running(connection: sa.Connection) -> dict[int, int]:
    """Packs of each team, on all workers."""
    query = (
        sa.select(backfills.c.team_id, sa.func.count(sa.distinct(slices.c.pack)).label("packs"))
        .join(backfills, backfills.c.id == slices.c.backfill_id)
        .where(among(slices.c.state, SliceState.RUNNING))
        .group_by(backfills.c.team_id)
    )
    return {row.team_id: row.packs for row in connection.execute(query)}
