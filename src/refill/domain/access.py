"""Who may do what: teams, users, roles, keys, scopes."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    OWNER = "owner"
    ADMIN = "admin"
    EDITOR = "editor"
    VIEWER = "viewer"

    @property
    def may_edit(self) -> bool:
        return self is not Role.VIEWER


class Scope(StrEnum):
    SINKS_READ = "sinks_read"
    SINKS_WRITE = "sinks_write"
    DATABASES_READ = "databases_read"
    DATABASES_WRITE = "databases_write"
    TRANSFERS_READ = "dwh_transfers_read"
    TRANSFERS_WRITE = "dwh_transfers_write"
    DESTINATIONS_READ = "dwh_destinations_read"
    DESTINATIONS_WRITE = "dwh_destinations_write"
    ADMIN = "admin"
    ALL = "all"

    @property
    def writes(self) -> bool:
        return self.value.endswith("_write") or self is Scope.ADMIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    id: int
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    id: int
    team_id: int
    name: str
    role: Role
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key as it is stored: the token itself is shown once and never kept."""

    id: int
    team_id: int
    user_id: int
    prefix: str
    token_hash: str
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who is asking: a key, its team and its user's role."""

    key_id: int
    team_id: int
    user_id: int
    role: Role
    scopes: frozenset[Scope]

    def allows(self, scope: Scope) -> bool:
        """Key and role must both allow; a write scope includes its read scope."""
        if scope.writes and not self.role.may_edit:
            return False
        if Scope.ALL in self.scopes or scope in self.scopes:
            return True
        stem = scope.value.removesuffix("_read")
        return scope.value.endswith("_read") and Scope(f"{stem}_write") in self.scopes
