"""`refill users`: who works in a team, and whether they may change things."""

from collections.abc import Sequence
from typing import Annotated

import typer

from refill.bootstrap import opened_store
from refill.cli.options import STORE, with_settings
from refill.cli.output import Json, print_json, print_table
from refill.domain.access import Role, User
from refill.settings import Settings

app = typer.Typer(help="Users: create, list. On the server's machine.")


@app.command()
@with_settings(*STORE)
def create(
    settings: Settings,
    name: Annotated[str, typer.Argument(help="What they are called.")],
    team: Annotated[int, typer.Option(help="Their team.")] = 1,
    role: Annotated[Role, typer.Option(help="A viewer sees; the others edit too.")] = Role.EDITOR,
    json: Json = False,
) -> None:
    """Make a user of a team."""
    with opened_store(settings) as store:
        store.get_team(team)
        _show([store.create_user(team, name, role)], json)


@app.command("list")
@with_settings(*STORE)
def list_(
    settings: Settings,
    team: Annotated[int | None, typer.Option(help="Only this team's.")] = None,
    json: Json = False,
) -> None:
    """Every user."""
    with opened_store(settings) as store:
        _show(store.list_users(team), json, several=True)


def _show(users: Sequence[User], json: bool, *, several: bool = False) -> None:
    rows = [
        {"user_id": u.id, "team_id": u.team_id, "name": u.name, "role": u.role.value} for u in users
    ]
    if json:
        print_json(rows if several else rows[0])
    else:
        print_table(["id", "team", "name", "role"], [list(row.values()) for row in rows])
