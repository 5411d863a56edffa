import pytest

from refill.domain.access import Caller, Role, Scope


def make_caller(role: Role, *scopes: Scope) -> Caller:
    return Caller(key_id=1, team_id=1, user_id=1, role=role, scopes=frozenset(scopes))


def test_key_and_role_must_both_allow() -> None:
    assert make_caller(Role.EDITOR, Scope.SINKS_WRITE).allows(Scope.SINKS_WRITE)
    assert not make_caller(Role.VIEWER, Scope.SINKS_WRITE).allows(Scope.SINKS_WRITE)
    assert not make_caller(Role.OWNER, Scope.SINKS_READ).allows(Scope.SINKS_WRITE)


def test_writing_includes_reading() -> None:
    assert make_caller(Role.VIEWER, Scope.TRANSFERS_WRITE).allows(Scope.TRANSFERS_READ)


@pytest.mark.parametrize("scope", list(Scope))
def test_an_owner_with_all_may_do_everything_and_a_viewer_only_reads(scope: Scope) -> None:
    assert make_caller(Role.OWNER, Scope.ALL).allows(scope)
    assert make_caller(Role.VIEWER, Scope.ALL).allows(scope) is not scope.writes
