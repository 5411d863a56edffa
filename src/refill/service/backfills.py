"""What can be done to a backfill, whichever product asked for it: they differ in words only."""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from datetime import date
from typing import Protocol

from refill.connectors.kit.contract import Connector
from refill.domain.backfill import Backfill, CountedBackfill, Move
from refill.domain.errors import Conflict, NotFound, RefillError
from refill.domain.slice import Reject, Slice
from refill.service.identity import is_repeatable
from refill.store.port import BackfillStore
from refill.store.records import NewBackfill, Page


class Words(Protocol):
    """How a product says no."""

    def in_the_way(self, wanted: NewBackfill | Backfill, other: Backfill) -> Conflict:
        """Another backfill holds what this one needs."""

    def refused(self, backfill: Backfill, move: Move) -> RefillError:
        """Its state does not allow the move."""


class Backfills:
    def __init__(self, *, store: BackfillStore, connectors: Mapping[str, Connector]) -> None:
        self._store = store
        self._connectors = connectors

    def submit(
        self, team_id: int, uid: str, freeze: Callable[[], NewBackfill], words: Words
    ) -> CountedBackfill:
        """`uid` names what a repeated request made the first time; it is not frozen anew."""
        made = self.find(team_id, uid) if is_repeatable(uid) else None
        return made or self.insert(freeze(), words)

    def insert(self, new: NewBackfill, words: Words) -> CountedBackfill:
        """What was frozen before; one of the same uid that is there already stands."""
        try:
            return self._store.insert_backfill(self.sealing(new))
        except Conflict as exc:
            other = exc.other
            if not isinstance(other, CountedBackfill):
                raise
            if other.uid == new.uid:
                return other
            raise words.in_the_way(new, other) from exc

    def sealing(self, new: NewBackfill) -> NewBackfill:
        """With the sink's own word on whether it has a last step to do."""
        seals = new.kind in self._connectors[new.spec.sink_type].seals
        return dataclasses.replace(new, seals=seals)

    def find(self, team_id: int, uid: str) -> CountedBackfill | None:
        try:
            return self._store.get_backfill_by_uid(team_id, uid)
        except NotFound:
            return None

    def move(
        self,
        backfill: CountedBackfill,
        move: Move,
        words: Words,
        *,
        user_id: int | None,
        dates: Collection[date] | None = None,
    ) -> CountedBackfill:
        """Pauses, resumes, cancels or retries; what is so already stays. `dates`: which of the
        failed ones are retried."""
        if backfill.has_made(move):
            return backfill
        if not backfill.allows(move):
            raise words.refused(backfill, move)
        place = (backfill.team_id, backfill.id)
        match move:
            case Move.PAUSE:
                return self._store.pause_backfill(*place)
            case Move.RESUME:
                return self._store.resume_backfill(*place)
            case Move.CANCEL:
                return self._store.cancel_backfill(*place, user_id)
            case Move.RETRY:
                return self._retry(backfill, words, dates)

    def slices(self, backfill: Backfill, *, limit: int | None, cursor: str | None) -> Page[Slice]:
        return self._store.list_slices(backfill.id, limit=limit, cursor=cursor)

    def rejects(
        self, backfill: Backfill, *, limit: int | None, cursor: str | None
    ) -> Page[tuple[Slice, Reject]]:
        return self._store.list_rejects(backfill.id, limit=limit, cursor=cursor)

    def _retry(
        self, backfill: CountedBackfill, words: Words, dates: Collection[date] | None
    ) -> CountedBackfill:
        # one that was never planned has no slices to choose from: it is planned again
        chosen = dates if backfill.planned else None
        try:
            return self._store.retry_backfill(backfill.team_id, backfill.id, chosen)
        except Conflict as exc:
            if not isinstance(exc.other, Backfill):
                raise
            raise words.in_the_way(backfill, exc.other) from exc
