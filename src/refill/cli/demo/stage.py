"""What the demo shows: steps, two bars, a verdict; and the same as a picture for the README."""

import io
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from refill.cli.demo.verdict import Line
from refill.cli.output import console
from refill.cli.view import View
from refill.cli.watch import Look, make_bars, show_in_bars, watch

_TITLE = Text.assemble(
    ("refill", "bold cyan"),
    ("  re-reads history and delivers it again, on Spark", "dim"),
)
PICTURE_WIDTH = 118


class Step:
    def __init__(self) -> None:
        self.detail = ""

    def say(self, detail: str) -> None:
        self.detail = detail


class Stage:
    """Everything lasting that is shown is kept, so that it can be drawn afterwards."""

    def __init__(self, *, quiet: bool) -> None:
        self._console = Console(quiet=True) if quiet else console()
        self._kept: list[RenderableType] = []

    def open(self) -> None:
        self._show(Padding(Panel(_TITLE, border_style="cyan", padding=(0, 2)), (1, 0)))

    @contextmanager
    def step(self, title: str) -> Iterator[Step]:
        step, began = Step(), time.monotonic()
        with self._console.status(f"[bold]{title}[/] …", spinner="dots"):
            yield step
        line = Table.grid(expand=True, padding=(0, 2))
        line.add_column(width=40, no_wrap=True)
        line.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        line.add_column(justify="right")
        seconds = f"[dim]{time.monotonic() - began:.1f} s[/]"
        line.add_row(f"[green]✓[/] [bold]{title}[/]", f"[dim]{step.detail}[/]", seconds)
        self._show(line)

    def watch(self, look: Look) -> tuple[list[View], float]:
        """Live, until they end; returns how, and the seconds since the first slice began. The
        picture keeps a moment from the middle of it."""
        self._show(Text())
        middle: list[Sequence[View]] = []
        began = time.monotonic()

        def look_and_keep() -> Sequence[View]:
            nonlocal began
            views = look()
            if all(view.rows_per_second is None for view in views):
                began = time.monotonic()  # Spark is still warming up
            if any(0.2 < view.fraction < 0.95 for view in views):
                middle.append(views)
            return views

        views = watch(look_and_keep, self._console)
        seconds = time.monotonic() - began
        # the fullest of moments: every bar under way, if there was one
        moment = max(middle, key=_liveliness, default=views)
        bars = make_bars(Console(width=PICTURE_WIDTH))
        show_in_bars(bars, moment)
        self._kept.append(bars.get_renderable())
        return views, seconds

    def conclude(self, lines: list[Line], equal: bool, seconds: float, rows: int) -> None:
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 3))
        table.add_column("counted afterwards")
        table.add_column("source", justify="right")
        table.add_column("destination", justify="right")
        table.add_column("")
        for line in lines:
            mark = "[green]✓ equal[/]" if line.equal else "[bold red]✗ differs[/]"
            table.add_row(line.what, line.source, line.destination, mark)
        pace = f"{rows:,} rows in {seconds:.1f} s, {rows / seconds:,.0f} rows/s"
        verdict = (
            f"[bold green]Every row arrived, once.[/] [dim]{pace}[/]"
            if equal
            else "[bold red]Something is missing: see server.log in the demo's folder[/]"
        )
        colour = "green" if equal else "red"
        body = Group(table, Text(), Text.from_markup(verdict))
        self._show(Padding(Panel(body, border_style=colour, padding=(1, 2)), (1, 0)))

    def invite(self, url: str, root: Path) -> None:
        """What to try while it stays up."""
        shown = _relative(root)
        tries = Table.grid(padding=(0, 3))
        activate = _relative(Path(sys.prefix) / "bin" / "activate")
        on_path = ((f". {activate}", "puts refill on the PATH"),)
        for command, meaning in (
            *(() if shutil.which("refill") else on_path),
            (f". {shown}/env", "take the key and the names"),
            ('refill backfills create --sink "$SINK" --watch', "all orders again"),
            ('refill backfills plan --transfer "$TRANSFER" --from … --to …', "look before it runs"),
            ("refill backfills list", "what there is"),
            ('curl -H "Authorization: Bearer $REFILL_API_KEY" $REFILL_URL/api/sinks', "as HTTP"),
        ):
            tries.add_row(f"[cyan]{command}[/]", f"[dim]{meaning}[/]")
        head = Text.from_markup(f"[bold]It stays up at [cyan]{url}[/] until Ctrl-C.[/] Try:")
        self._console.print(Group(head, Padding(tries, (1, 0, 1, 2))), soft_wrap=True)

    def draw(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        sheet = Console(
            record=True,
            width=PICTURE_WIDTH,
            force_terminal=True,
            file=io.StringIO(),
            color_system="truecolor",
        )
        sheet.print("[bold green]$[/] make demo")
        for each in self._kept:
            sheet.print(each)
        drawn = sheet.export_svg(title="make demo")
        # fonts from elsewhere are not fetched by whoever shows it: the reader's own will do
        path.write_text(re.sub(r"@font-face \{.*?\}\n*", "", drawn, flags=re.DOTALL))

    def _show(self, item: RenderableType) -> None:
        self._kept.append(item)
        self._console.print(item)


def _liveliness(views: Sequence[View]) -> float:
    return min((min(view.fraction, 1 - view.fraction) for view in views), default=0.0)


def _relative(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
