"""Answers kept under an Idempotency-Key."""

from typing import TypeVar

import sqlalchemy as sa

from refill.store.part import Part
from refill.store.records import UNANSWERED, StoredAnswer
from refill.store.tables import answers

Q = TypeVar("Q", sa.Update, sa.Delete)


class Answers(Part):
    def reserve_answer(
        self, team_id: int, route: str, key: str, body_hash: str
    ) -> StoredAnswer | None:
        while True:
            with self._backend.write() as connection:
                values = {
                    "team_id": team_id,
                    "route": route,
                    "key": key,
                    "body_hash": body_hash,
                    "status": UNANSWERED,
                    "body": "",
                    "created_at": self._backend.now(connection),
                }
                query = self._backend.insert_missing(answers).values(values)
                if connection.execute(query.returning(answers.c.key)).first() is not None:
                    return None
                kept = _find(connection, team_id, route, key)
            if kept is not None:  # else it was released in between
                return kept

    def save_answer(self, team_id: int, route: str, key: str, answer: StoredAnswer) -> None:
        query = _reserved(answers.update(), team_id, route, key)
        with self._backend.write() as connection:
            connection.execute(query.values(status=answer.status, body=answer.body))

    def release_answer(self, team_id: int, route: str, key: str) -> None:
        with self._backend.write() as connection:
            connection.execute(_reserved(answers.delete(), team_id, route, key))


def _reserved(query: Q, team_id: int, route: str, key: str) -> Q:
    """Only a reservation: an answer that is kept stands."""
    return query.where(
        answers.c.team_id == team_id,
        answers.c.route == route,
        answers.c.key == key,
        answers.c.status == UNANSWERED,
    )


def _find(connection: sa.Connection, team_id: int, route: str, key: str) -> StoredAnswer | None:
    query = sa.select(answers.c.body_hash, answers.c.status, answers.c.body).where(
        answers.c.team_id == team_id, answers.c.route == route, answers.c.key == key
    )
    row = connection.execute(query).first()
    return None if row is None else StoredAnswer(**row._mapping)
