"""Answers that are kept: the same key and body get the same one again."""

import hashlib
from dataclasses import dataclass

from refill.domain.errors import Invalid
from refill.store.port import BackfillStore
from refill.store.records import UNANSWERED, StoredAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A key, taken for one request. `repeated`: the same request took it before, and nobody knows
    what became of it."""

    team_id: int
    route: str
    key: str
    body_hash: str
    repeated: bool

    @property
    def place(self) -> tuple[int, str, str]:
        return self.team_id, self.route, self.key


class Answers:
    """A key is reserved before anything is done: so it holds too when the answer was lost."""

    def __init__(self, *, store: BackfillStore) -> None:
        self._store = store

    def reserve(
        self, team_id: int, route: str, key: str, body: bytes
    ) -> Reservation | StoredAnswer:
        """The answer that was given before, else the right to make it. Invalid when the key was
        used with another body."""
        body_hash = hashlib.sha256(body).hexdigest()
        kept = self._store.reserve_answer(team_id, route, key, body_hash)
        if kept is not None and kept.body_hash != body_hash:
            raise Invalid(
                "The Idempotency-Key was used before with another body; use a new key for a new "
                "request."
            )
        if kept is not None and kept.status != UNANSWERED:
            return kept
        return Reservation(
            team_id=team_id, route=route, key=key, body_hash=body_hash, repeated=kept is not None
        )

    def keep(self, reservation: Reservation, status: int, body: str) -> None:
        answer = StoredAnswer(body_hash=reservation.body_hash, status=status, body=body)
        self._store.save_answer(*reservation.place, answer)

    def release(self, reservation: Reservation) -> None:
        """Only its own: another's request may still be under way."""
        if not reservation.repeated:
            self._store.release_answer(*reservation.place)
