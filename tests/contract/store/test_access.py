"""Teams, users and keys."""

from datetime import UTC, datetime

import pytest

from refill.domain.access import ApiKey, Role, Scope
from refill.domain.errors import Conflict, NotFound
from refill.store.port import Store


def make_key(store: Store, prefix: str = "abc", **changes: object) -> ApiKey:
    values = {
        "team_id": 1,
        "user_id": 1,
        "prefix": prefix,
        "token_hash": "hash",
        "scopes": {Scope.ALL, Scope.SINKS_READ},
    }
    return store.create_key(**values | changes)  # type: ignore[arg-type]


def test_teams_and_users_come_back_as_they_were_made(store: Store) -> None:
    team = store.create_team("second")
    user = store.create_user(team.id, "ann", Role.VIEWER)
    assert store.get_team(team.id) == team
    assert store.get_user(team.id, user.id) == user
    assert store.list_users(team.id) == (user,)
    assert len(store.list_users()) == 2


def test_a_user_of_another_team_is_not_found(store: Store) -> None:
    team = store.create_team("second")
    with pytest.raises(NotFound):
        store.get_user(team.id, 1)
    with pytest.raises(NotFound):
        store.create_user(10**9, "nobody", Role.OWNER)
    with pytest.raises(NotFound):
        store.get_team(10**9)


def test_a_key_is_found_by_its_prefix_with_its_user(store: Store) -> None:
    expires = datetime(2030, 1, 1, tzinfo=UTC)
    key = make_key(store, expires_at=expires)
    found = store.find_key("abc")
    assert found is not None
    assert found[0] == key
    assert found[0].scopes == {Scope.ALL, Scope.SINKS_READ}
    assert found[0].expires_at == expires
    assert found[1].id == 1
    assert store.find_key("xyz") is None
    assert store.list_keys(1) == (key,)
    assert store.list_keys(2) == ()


def test_a_key_needs_a_user_of_its_team(store: Store) -> None:
    team = store.create_team("second")
    with pytest.raises(NotFound):
        make_key(store, team_id=team.id)


def test_a_prefix_is_given_once(store: Store) -> None:
    make_key(store)
    with pytest.raises(Conflict):
        make_key(store)


def test_a_revoked_key_is_still_found_and_stays_revoked_as_of_the_first_time(store: Store) -> None:
    key = make_key(store)
    revoked = store.revoke_key(key.id)
    assert revoked.revoked_at is not None
    assert store.revoke_key(key.id).revoked_at == revoked.revoked_at
    found = store.find_key("abc")
    assert found is not None
    assert found[0].revoked_at == revoked.revoked_at
    with pytest.raises(NotFound):
        store.revoke_key(10**9)
