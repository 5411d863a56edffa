"""`refill keys`: what programs show to be let in. A key is seen once, when it is made."""

from datetime import timedelta
from typing import Annotated, Any

import typer

from refill.bootstrap import opened_store
from refill.cli.options import STORE, with_settings
from refill.cli.output import Json, Stopped, console, print_json, print_table
from refill.clock import system_clock
from refill.domain.access import ApiKey, Scope
from refill.settings import Settings

app = typer.Typer(help="API keys: create, list, revoke. On the server's machine.")


@app.command()
@with_settings(*STORE)
def create(
    settings: Settings,
    team: Annotated[int, typer.Option(help="The team it opens.")] = 1,
    user: Annotated[int | None, typer.Option(help="Whose it is; the team's first user.")] = None,
    scope: Annotated[
        list[Scope] | None, typer.Option(help="What it allows; may be given again. Default all.")
    ] = None,
    expires_days: Annotated[int | None, typer.Option(min=1, help="Ends by itself.")] = None,
    json: Json = False,
) -> None:
    """Make a key. It is printed now and never again."""
    from refill.service.access import Access

    with opened_store(settings) as store:
        store.get_team(team)
        users = store.list_users(team)
        if user is None and not users:
            raise Stopped(f"Team {team} has no user; make one with `refill users create`.")
        until = system_clock() + timedelta(days=expires_days) if expires_days else None
        minted = Access(store=store, clock=system_clock).mint_key(
            team_id=team,
            user_id=user if user is not None else users[0].id,
            scopes=scope or [Scope.ALL],
            expires_at=until,
        )
    if json:
        shown = {"key": minted.token, "team_id": team, "user_id": minted.key.user_id}
        print_json(shown)
        return
    console().print(minted.token, soft_wrap=True)
    console(stderr=True).print("[dim]Keep it: it cannot be shown again.[/]")


@app.command("list")
@with_settings(*STORE)
def list_(
    settings: Settings,
    team: Annotated[int | None, typer.Option(help="Only this team's.")] = None,
    json: Json = False,
) -> None:
    """Every key, without its secret part."""
    with opened_store(settings) as store:
        rows = [_row(key) for key in store.list_keys(team)]
    if json:
        print_json(rows)
    else:
        columns = ["id", "prefix", "team", "user", "scopes", "created", "expires", "revoked"]
        print_table(columns, [list(row.values()) for row in rows])


@app.command()
@with_settings(*STORE)
def revoke(
    settings: Settings,
    key_id: Annotated[int, typer.Argument(help="Its id, as `refill keys list` shows it.")],
    json: Json = False,
) -> None:
    """End a key at once."""
    with opened_store(settings) as store:
        row = _row(store.revoke_key(key_id))
    if json:
        print_json(row)
    else:
        console().print(f"Key {key_id} ({row['prefix']}…) is revoked.")


def _row(key: ApiKey) -> dict[str, Any]:
    return {
        "key_id": key.id,
        "prefix": f"rf_{key.prefix}",
        "team_id": key.team_id,
        "user_id": key.user_id,
        "scopes": " ".join(sorted(scope.value for scope in key.scopes)),
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
    }
