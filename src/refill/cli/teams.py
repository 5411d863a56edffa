"""`refill teams`: the tenants. Everything belongs to a team."""

from typing import Annotated

import typer

from refill.bootstrap import opened_store
from refill.cli.options import STORE, with_settings
from refill.cli.output import Json, print_json, print_table
from refill.domain.access import Team
from refill.settings import Settings

app = typer.Typer(help="Teams: create, list. On the server's machine.")


@app.command()
@with_settings(*STORE)
def create(
    settings: Settings,
    name: Annotated[str, typer.Argument(help="What it is called.")],
    json: Json = False,
) -> None:
    """Make a team. It has no user yet: see `refill users create`."""
    with opened_store(settings) as store:
        _show([store.create_team(name)], json)


@app.command("list")
@with_settings(*STORE)
def list_(settings: Settings, json: Json = False) -> None:
    """Every team."""
    with opened_store(settings) as store:
        _show(store.list_teams(), json, several=True)


def _show(teams: "list[Team] | tuple[Team, ...]", json: bool, *, several: bool = False) -> None:
    rows = [{"team_id": t.id, "name": t.name, "created_at": t.created_at} for t in teams]
    if json:
        print_json(rows if several else rows[0])
    else:
        print_table(["id", "name", "created"], [list(row.values()) for row in rows])
