"""Keys and who comes with them."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from refill.clock import Clock
from refill.domain.access import ApiKey, Caller, Role, Scope, Team, User
from refill.domain.errors import Unauthenticated
from refill.store.port import AccessStore

_TOKEN = re.compile(r"rf_([0-9a-f]{12})_([A-Za-z0-9_-]{20,100})")


@dataclass(frozen=True, slots=True, kw_only=True)
class MintedKey:
    """A new key with its token: the one time that it can be seen."""

    key: ApiKey
    token: str

    def __repr__(self) -> str:
        return f"MintedKey(key={self.key.prefix!r})"


class Access:
    """Mints keys and tells who is asking."""

    def __init__(self, *, store: AccessStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def mint_key(
        self,
        *,
        team_id: int,
        user_id: int,
        scopes: Collection[Scope],
        expires_at: datetime | None = None,
    ) -> MintedKey:
        """The user must be of the team: NotFound otherwise."""
        self._store.get_user(team_id, user_id)
        prefix = secrets.token_hex(6)
        token = f"rf_{prefix}_{secrets.token_urlsafe(32)}"
        key = self._store.create_key(
            team_id=team_id,
            user_id=user_id,
            prefix=prefix,
            token_hash=_hash(token),
            scopes=scopes,
            expires_at=expires_at,
        )
        return MintedKey(key=key, token=token)

    def teams(self) -> tuple[Team, ...]:
        return self._store.list_teams()

    def create_team(self, name: str) -> Team:
        return self._store.create_team(name)

    def users(self, team_id: int) -> tuple[User, ...]:
        return self._store.list_users(team_id)

    def create_user(self, team_id: int, name: str, role: Role) -> User:
        return self._store.create_user(team_id, name, role)

    def use(self, counted: str, hour: int, count: int) -> int:
        """How many were used in that hour before these, by all processes that share the store."""
        return self._store.count_use(counted, hour, count)

    def authenticate(self, authorization: str | None) -> Caller:
        """Who is behind an Authorization header; each way to fail has a reason of its own."""
        if not authorization:
            raise Unauthenticated(
                "No API key came with the request; send it as `Authorization: Bearer <key>`.",
                missing=True,
            )
        kind, _, token = authorization.partition(" ")
        match = _TOKEN.fullmatch(token.strip()) if kind.lower() == "bearer" else None
        if match is None:
            raise Unauthenticated(
                "The API key is malformed; the header has the form `Authorization: Bearer rf_…`."
            )
        found = self._store.find_key(match[1])
        # compared even when there is none, so that the time taken does not tell
        expected = found[0].token_hash if found else _hash("")
        if not hmac.compare_digest(expected, _hash(token.strip())) or found is None:
            raise Unauthenticated("The API key is not known; create one with `refill keys create`.")
        key, user = found
        if key.revoked_at is not None:
            raise Unauthenticated("The API key was revoked; create another one.")
        if key.expires_at is not None and key.expires_at <= self._clock():
            raise Unauthenticated("The API key has expired; create another one.")
        return Caller(
            key_id=key.id,
            team_id=key.team_id,
            user_id=key.user_id,
            role=user.role,
            scopes=key.scopes,
        )


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
