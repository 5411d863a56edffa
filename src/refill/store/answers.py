"""Answers kept under an Idempotency-Key."""

import sqlalchemy as sa

from refill.store.part import Part
from refill.store.port import StoredAnswer
from refill.store.tables import answers


class Answers(Part):
    def get_answer(self, team_id: int, route: str, key: str) -> StoredAnswer | None:
        with self._backend.read() as connection:
            return _find(connection, team_id, route, key)

    def save_answer(self, team_id: int, route: str, key: str, answer: StoredAnswer) -> StoredAnswer:
        with self._backend.write() as connection:
            values = {
                "team_id": team_id,
                "route": route,
                "key": key,
                "body_hash": answer.body_hash,
                "status": answer.status,
                "body": answer.body,
                "created_at": self._backend.now(connection),
            }
            connection.execute(self._backend.insert_missing(answers).values(values))
            return _find(connection, team_id, route, key) or answer


def _find(connection: sa.Connection, team_id: int, route: str, key: str) -> StoredAnswer | None:
    query = sa.select(answers.c.body_hash, answers.c.status, answers.c.body).where(
        answers.c.team_id == team_id, answers.c.route == route, answers.c.key == key
    )
    row = connection.execute(query).first()
    return None if row is None else StoredAnswer(**row._mapping)
