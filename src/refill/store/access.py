"""Teams, users and keys."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from refill.domain.access import ApiKey, Role, Scope, Team, User
from refill.domain.errors import Conflict, NotFound
from refill.store.part import Part
from refill.store.rows import (
    from_json,
    to_datetime,
    to_datetime_or_none,
    to_json,
    to_micros_or_none,
)
from refill.store.tables import api_keys, teams, users


class Access(Part):
    def create_team(self, name: str) -> Team:
        with self._backend.write() as connection:
            values = {"name": name, "created_at": self._backend.now(connection)}
            query = teams.insert().values(values).returning(teams)
            return _team(connection.execute(query).mappings().one())

    def list_teams(self) -> tuple[Team, ...]:
        with self._backend.read() as connection:
            rows = connection.execute(sa.select(teams).order_by(teams.c.id)).mappings()
            return tuple(_team(row) for row in rows)

    def get_team(self, team_id: int) -> Team:
        with self._backend.read() as connection:
            return _team(self._team(connection, team_id))

    def create_user(self, team_id: int, name: str, role: Role) -> User:
        with self._backend.write() as connection:
            self._team(connection, team_id)
            values = {
                "team_id": team_id,
                "name": name,
                "role": Role(role).value,
                "created_at": self._backend.now(connection),
            }
            query = users.insert().values(values).returning(users)
            return _user(connection.execute(query).mappings().one())

    def list_users(self, team_id: int | None = None) -> tuple[User, ...]:
        query = sa.select(users).order_by(users.c.id)
        if team_id is not None:
            query = query.where(users.c.team_id == team_id)
        with self._backend.read() as connection:
            return tuple(_user(row) for row in connection.execute(query).mappings())

    def get_user(self, team_id: int, user_id: int) -> User:
        with self._backend.read() as connection:
            return _user(self._user(connection, team_id, user_id))

    def create_key(
        self,
        *,
        team_id: int,
        user_id: int,
        prefix: str,
        token_hash: str,
        scopes: Collection[Scope],
        expires_at: datetime | None = None,
    ) -> ApiKey:
        try:
            with self._backend.write() as connection:
                self._user(connection, team_id, user_id)
                values = {
                    "team_id": team_id,
                    "user_id": user_id,
                    "prefix": prefix,
                    "token_hash": token_hash,
                    "scopes": to_json(sorted(Scope(scope).value for scope in scopes)),
                    "created_at": self._backend.now(connection),
                    "expires_at": to_micros_or_none(expires_at),
                }
                query = api_keys.insert().values(values).returning(api_keys)
                return _key(connection.execute(query).mappings().one())
        except sa.exc.IntegrityError as error:
            raise Conflict(
                f"A key with the prefix {prefix} is there already: draw another.", field="prefix"
            ) from error

    def list_keys(self, team_id: int | None = None) -> tuple[ApiKey, ...]:
        query = sa.select(api_keys).order_by(api_keys.c.id)
        if team_id is not None:
            query = query.where(api_keys.c.team_id == team_id)
        with self._backend.read() as connection:
            return tuple(_key(row) for row in connection.execute(query).mappings())

    def find_key(self, prefix: str) -> tuple[ApiKey, User] | None:
        with self._backend.read() as connection:
            query = sa.select(api_keys).where(api_keys.c.prefix == prefix)
            found = connection.execute(query).mappings().first()
            if found is None:
                return None
            key = _key(found)
            try:
                return key, _user(self._user(connection, key.team_id, key.user_id))
            except NotFound:
                return None  # nobody is behind it any more

    def revoke_key(self, key_id: int) -> ApiKey:
        """A second time changes nothing: the first revocation's time stands."""
        with self._backend.write() as connection:
            now = self._backend.now(connection)
            connection.execute(
                api_keys.update()
                .where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None))
                .values(revoked_at=now)
            )
            query = sa.select(api_keys).where(api_keys.c.id == key_id)
            return _key(self._one(connection, query, "key", key_id))

    def _team(self, connection: sa.Connection, team_id: int) -> sa.RowMapping:
        return self._one(connection, sa.select(teams).where(teams.c.id == team_id), "team", team_id)

    def _user(self, connection: sa.Connection, team_id: int, user_id: int) -> sa.RowMapping:
        query = sa.select(users).where(users.c.id == user_id, users.c.team_id == team_id)
        return self._one(connection, query, "user", user_id)


def _team(row: Any) -> Team:
    return Team(id=row["id"], name=row["name"], created_at=to_datetime(row["created_at"]))


def _user(row: Any) -> User:
    return User(
        id=row["id"],
        team_id=row["team_id"],
        name=row["name"],
        role=Role(row["role"]),
        created_at=to_datetime(row["created_at"]),
    )


def _key(row: Any) -> ApiKey:
    return ApiKey(
        id=row["id"],
        team_id=row["team_id"],
        user_id=row["user_id"],
        prefix=row["prefix"],
        token_hash=row["token_hash"],
        scopes=frozenset(Scope(scope) for scope in from_json(row["scopes"])),
        created_at=to_datetime(row["created_at"]),
        expires_at=to_datetime_or_none(row["expires_at"]),
        revoked_at=to_datetime_or_none(row["revoked_at"]),
    )
