"""What the commands print: tables for people, JSON for programs, one sentence for errors."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


class ExitCode(IntEnum):
    DONE = 0
    ERROR = 1
    CANCELLED = 2
    FAILED_DATES = 3
    NOT_ALLOWED = 4


class Stopped(Exception):
    """The command ends here, with this code and at most one sentence on stderr."""

    def __init__(self, message: str = "", code: ExitCode = ExitCode.ERROR) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


def console(*, stderr: bool = False) -> "Console":
    """Made when it is used, so that redirected streams are seen as they are."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=stderr)


def complain(sentence: str) -> None:
    console(stderr=True).print(f"[bold red]refill:[/] {_escape(sentence)}")


def announce(what: str, value: str) -> None:
    """One line as a server starts, without loading what draws tables."""
    typer.echo(f"{what} {typer.style(value, bold=True)}")


def print_json(value: object, *, one_line: bool = False) -> None:
    indent = None if one_line else 2
    sys.stdout.write(json.dumps(value, indent=indent, ensure_ascii=False, default=str) + "\n")
    sys.stdout.flush()


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else _escape(str(value)) for value in row))
    console().print(table)


def print_record(record: Mapping[str, Any]) -> None:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    for name, value in record.items():
        grid.add_row(f"[bold]{name}[/]", "" if value is None else _escape(str(value)))
    console().print(grid)


def _escape(text: str) -> str:
    return text.replace("[", r"\[")
