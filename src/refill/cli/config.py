"""`refill config`: a team's databases, sinks, transfers and others as one file."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from refill.cli.client import Client
from refill.cli.differences import counted, described
from refill.cli.options import with_client
from refill.cli.output import Json, Stopped, console, print_json
from refill.cli.substitution import substituted

app = typer.Typer(help="The configuration as a file: plan, apply, export.")

File = Annotated[Path, typer.Argument(help="The file; - reads from standard input.")]
Prune = Annotated[bool, typer.Option("--prune", help="Delete what the file's sections lack.")]
DEFAULT = Path("refill.yaml")


@app.command()
@with_client
def plan(client: Client, file: File = DEFAULT, prune: Prune = False, json: Json = False) -> None:
    """Show what applying the file would change."""
    answer = client.post("/api/config/plan", {"yaml": read(file), "prune": prune})
    print_json(answer) if json else _show(answer)


@app.command()
@with_client
def apply(
    client: Client,
    file: File = DEFAULT,
    prune: Prune = False,
    yes: Annotated[bool, typer.Option("--yes", "--auto-approve", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Make it as the file says. Nothing is deleted without --prune."""
    body = {"yaml": read(file), "prune": prune}
    planned = client.post("/api/config/plan", body)
    if not json:
        _show(planned)
    if planned["changes"] and not yes:
        if not sys.stdin.isatty() or str(file) == "-":
            raise Stopped("Nobody is there to ask; look at the plan, then apply it with --yes.")
        typer.confirm("Make these changes?", abort=True)
    answer = client.post("/api/config/apply", body) if planned["changes"] else planned
    if json:
        print_json({"changes": answer["changes"]})
    elif planned["changes"]:
        console().print("Done.")


@app.command()
@with_client
def export(
    client: Client,
    show_sensitive: Annotated[
        bool, typer.Option("--show-sensitive", help="With secrets, for owners and admins.")
    ] = False,
) -> None:
    """Write down what is there, as a file that can be applied again."""
    query = {"show-sensitive": "true" if show_sensitive else "false"}
    typer.echo(client.get("/api/config/export", **query)["yaml"], nl=False)


def read(file: Path) -> str:
    """The file with its variables filled in, here: the server knows other ones."""
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text()
        found = yaml.load(text, Loader=yaml.BaseLoader)
    except OSError as error:
        raise Stopped(f"{file} cannot be read: {error.strerror}.") from None
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())
        raise Stopped(f"{file} is not YAML: {said}.") from None
    if _has_variables(found):
        return yaml.safe_dump(substituted(yaml.safe_load(text), os.environ), sort_keys=False)
    return text


def _has_variables(found: Any) -> bool:
    if isinstance(found, dict):
        return any(_has_variables(inner) for inner in found.values())
    if isinstance(found, list):
        return any(_has_variables(inner) for inner in found)
    return isinstance(found, str) and "${" in found


def _show(answer: dict[str, Any]) -> None:
    changes = answer["changes"]
    if not changes:
        console().print("Nothing changes.")
        return
    out = console()
    for line, colour in described(changes):
        out.print(line, style=colour, markup=False)
    for action in answer.get("actions", []):
        out.print(f"* {action['description']}", markup=False)
    out.print(counted(changes))
