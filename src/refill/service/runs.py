"""Runs: the dated slices of a transfer, as its users watch them."""

from dataclasses import dataclass
from datetime import datetime

from refill.domain.backfill import Backfill, Origin
from refill.domain.errors import Invalid, NotFound
from refill.domain.pipeline import Kind
from refill.domain.slice import Slice
from refill.service.transfers import Transfers
from refill.store.port import BackfillStore


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQuery:
    start: datetime
    end: datetime
    issues_only: bool = False
    sort_field: str = "created_time"
    descending: bool = True
    limit: int = 100
    offset: int = 0


class Runs:
    def __init__(self, *, store: BackfillStore, transfers: Transfers) -> None:
        self._store = store
        self._transfers = transfers

    def list_of(
        self, team_id: int, transfer_id: int, query: RunQuery
    ) -> tuple[tuple[Slice, Origin], ...]:
        """Recurring runs and those of backfills alike."""
        self._transfers.get(team_id, transfer_id)
        if query.start > query.end:
            raise Invalid.of("start_date", "it is after end_date; swap them.")
        return self._store.list_runs(
            team_id,
            transfer_id,
            start=query.start,
            end=query.end,
            issues_only=query.issues_only,
            sort_field=query.sort_field,
            descending=query.descending,
            limit=query.limit,
            offset=query.offset,
        )

    def get(self, team_id: int, run_id: int) -> tuple[Slice, Backfill]:
        found, backfill = self._store.get_run(team_id, run_id)
        if backfill.kind is not Kind.TRANSFER:
            raise NotFound("run", run_id)
        return found, backfill
