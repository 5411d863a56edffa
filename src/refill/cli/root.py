"""The commands put together, and what becomes of their errors."""

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

import typer

from refill.cli.output import ExitCode, Stopped, complain
from refill.domain.errors import Forbidden, RefillError, Unauthenticated

COMMANDS = ("demo", "serve", "api", "worker", "migrate", "doctor")
GROUPS = ("backfills", "config", "teams", "users", "keys")


def make_app(names: Sequence[str] = (*COMMANDS, *GROUPS)) -> typer.Typer:
    """The commands of these names, each in the module of its name."""
    app = typer.Typer(
        name="refill",
        help="Backfills as a service: re-read history and deliver it again, on Spark.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        callback=lambda: None,  # a group, also of one command
    )
    for name in names:
        module = import_module(f"refill.cli.{name}")
        if name in GROUPS:
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(getattr(module, name))
    return app


def run(argv: Sequence[str] | None = None) -> int:
    """Runs one command; what went wrong is one sentence on stderr, never a traceback."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _app_for(words)(args=words, standalone_mode=False)
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
        complain(f"{error.format_message().rstrip('.')}. See: refill {_command(words)}--help")
        return ExitCode.ERROR
    except (typer.Abort, KeyboardInterrupt):
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # the reader of our output went away; leave nothing for the interpreter to flush into it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.ERROR
    return int(code or 0)


def _app_for(words: Sequence[str]) -> typer.Typer:
    """Only the command that is named, where one is: to import the others would take longer."""
    named = words[0] if words else ""
    return make_app((named,)) if named in COMMANDS or named in GROUPS else make_app()


def _command(words: Sequence[str]) -> str:
    names: list[str] = []
    for word in words:
        if word.startswith("-") or len(names) == 2:
            break
        names.append(word)
    if names and names[0] in COMMANDS:
        return f"{names[0]} "
    if names and names[0] in GROUPS:
        return f"{' '.join(names)} "
    return ""
