"""What every part of the store is built on."""

import random
from typing import Any

import sqlalchemy as sa

from refill.domain.errors import NotFound
from refill.store.backend import Backend
from refill.store.cipher import Cipher


class Part:
    """Tables of one concern. The parts share a backend, and are composed in `sql.py`."""

    def __init__(self, backend: Backend, cipher: Cipher, rng: random.Random | None = None) -> None:
        self._backend = backend
        self._cipher = cipher
        self._rng = rng or random.Random()

    @staticmethod
    def _one(connection: sa.Connection, query: Any, kind: str, identity: object) -> sa.RowMapping:
        """The row, or NotFound."""
        row = connection.execute(query).mappings().first()
        if row is None:
            raise NotFound(kind, identity)
        return row
