"""The commands put together, and what becomes of their errors."""

import os
import signal
import sys
from collections.abc import Sequence

import typer

from refill.cli import (
    api,
    backfills,
    demo,
    doctor,
    keys,
    migrate,
    serve,
    teams,
    users,
    worker,
)
from refill.cli.output import ExitCode, Stopped, complain
from refill.domain.errors import Forbidden, RefillError, Unauthenticated

app = typer.Typer(
    name="refill",
    help="Backfills as a service: re-read history and deliver it again, on Spark.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("serve")(serve.serve)
app.command("api")(api.api)
app.command("worker")(worker.worker)
app.command("migrate")(migrate.migrate)
app.command("doctor")(doctor.doctor)
app.add_typer(backfills.app, name="backfills")
app.add_typer(teams.app, name="teams")
app.add_typer(users.app, name="users")
app.add_typer(keys.app, name="keys")


def run(argv: Sequence[str] | None = None) -> int:
    """Runs one command; what went wrong is one sentence on stderr, never a traceback."""
    try:
        code = app(args=list(argv) if argv is not None else None, standalone_mode=False)
    except Stopped as stopped:
        if stopped.message:
            complain(stopped.message)
        return stopped.code
    except (Forbidden, Unauthenticated) as error:
        complain(error.message)
        return ExitCode.NOT_ALLOWED
    except RefillError as error:
        complain(error.message)
        return ExitCode.ERROR
    except typer.TyperException as error:
        # a usage error is an error: click's own 2 would read as "cancelled"
        complain(f"{error.format_message().rstrip('.')}. See: refill {_command(argv)}--help")
        return ExitCode.ERROR
    except (typer.Abort, KeyboardInterrupt):
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # the reader of our output went away; leave nothing for the interpreter to flush into it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.ERROR
    return int(code or 0)


def _command(argv: Sequence[str] | None) -> str:
    words = list(sys.argv[1:] if argv is None else argv)
    names: list[str] = []
    for word in words:
        if word.startswith("-") or len(names) == 2:
            break
        names.append(word)
    known = {command.name for command in app.registered_commands}
    groups = {group.name for group in app.registered_groups}
    if names and names[0] in known:
        return f"{names[0]} "
    if names and names[0] in groups:
        return f"{' '.join(names)} "
    return ""
