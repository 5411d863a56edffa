"""Teams and users in a file. They are made, and never changed or removed by one."""

from refill.domain.access import Caller, Role, Team
from refill.domain.errors import Forbidden
from refill.service.access import Access
from refill.service.config.changes import Form, Wish
from refill.service.config.sections import Section, Shown, Wishes

OPERATORS_TEAM = 1


class TeamSection(Section):
    name, kind = "teams", "team"
    exported = pruned = False

    def __init__(self, access: Access) -> None:
        self._access = access

    def current(self, caller: Caller, shown: Shown) -> dict[str, Form]:
        return {team.name: {"name": team.name} for team in self._seen(caller)}

    def check(self, caller: Caller, wish: Wish, wishes: Wishes) -> None:
        """Teams are tenants: one cannot make others, but the operator's can."""
        if wish.name not in {team.name for team in self._seen(caller)} and not _operates(caller):
            raise Forbidden(
                f"The team {wish.name} is not the key's own; an owner of team 1 makes others."
            )

    def put(self, caller: Caller, wish: Wish, *, there: bool) -> None:
        self._access.create_team(wish.name)

    def _seen(self, caller: Caller) -> list[Team]:
        found = self._access.teams()
        return [team for team in found if _operates(caller) or team.id == caller.team_id]


class UserSection(Section):
    name, kind = "users", "user"
    exported = pruned = False

    def __init__(self, access: Access) -> None:
        self._access = access

    def current(self, caller: Caller, shown: Shown) -> dict[str, Form]:
        return {user.name: {"name": user.name} for user in self._access.users(caller.team_id)}

    def check(self, caller: Caller, wish: Wish, wishes: Wishes) -> None:
        if caller.role not in (Role.OWNER, Role.ADMIN):
            raise Forbidden("Users are made by owners and admins only.")
        if wish.draft is Role.OWNER and caller.role is not Role.OWNER:
            raise Forbidden("Only an owner makes another owner.")

    def wished(self, wish: Wish) -> Form:
        return {"name": wish.name}

    def put(self, caller: Caller, wish: Wish, *, there: bool) -> None:
        self._access.create_user(caller.team_id, wish.name, wish.draft)


def _operates(caller: Caller) -> bool:
    return caller.team_id == OPERATORS_TEAM and caller.role is Role.OWNER
