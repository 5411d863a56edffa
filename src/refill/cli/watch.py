"""Watching backfills: bars with rate and time left on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from refill.cli.view import View, spoken_seconds

_COLOURS = {"completed": "green", "failed": "red", "cancelled": "yellow", "paused": "yellow"}
POLL_SECONDS = 0.5
WIDE = 112  # columns of a terminal that shows every figure

Look = Callable[[], Sequence[View]]


def watch(look: Look, console: Console, pause: Callable[[float], None] = time.sleep) -> list[View]:
    """Looks until every backfill has ended; returns how they ended."""
    if console.is_terminal:
        return _watch_bars(look, console, pause)
    return _watch_lines(look, console, pause)


def make_bars(console: Console) -> Progress:
    """A narrow terminal gets fewer figures, not broken lines."""
    narrow = console.width < WIDE
    figures = ("rows", "rate", "left") if narrow else ("slices", "rows", "rate", "left")
    return Progress(
        SpinnerColumn(finished_text=" "),
        _Title(narrow),
        BarColumn(bar_width=None, complete_style="cyan", finished_style="green"),
        TextColumn("[bold]{task.percentage:>5.1f} %"),
        *map(_Figure, figures),
        console=console,
        expand=True,
        transient=False,
    )


def show_in_bars(bars: Progress, views: Sequence[View]) -> None:
    """Brings the bars up to date, one per backfill in the order given."""
    for index, view in enumerate(views):
        if index >= len(bars.tasks):
            bars.add_task("", total=1.0, view=view)
        done = min(view.fraction, 0.999) if not view.ended else view.fraction
        bars.update(
            bars.task_ids[index],
            completed=1.0 if view.ended and view.state != "failed" else done,
            view=view,
        )


def line_of(view: View) -> str:
    """One line that says all: for logs and pipes."""
    parts = [
        f"{view.id} {view.pipeline} {view.subject}: {view.state}",
        f"{view.fraction:.1%}",
        f"slices {view.slices_completed}/{view.slices_total}",
        f"rows {view.rows:,}",
    ]
    if view.slices_failed:
        parts.append(f"failed {view.slices_failed}")
    if view.rows_rejected:
        parts.append(f"rejected {view.rows_rejected:,}")
    if view.rows_per_second is not None:
        parts.append(f"{view.rows_per_second:,.0f} rows/s")
    if not view.ended and view.eta_seconds is not None:
        parts.append(f"left {spoken_seconds(view.eta_seconds)}")
    if view.error:
        parts.append(view.error)
    return ", ".join(parts)


def _watch_bars(look: Look, console: Console, pause: Callable[[float], None]) -> list[View]:
    with make_bars(console) as bars:
        while True:
            views = list(look())
            show_in_bars(bars, views)
            if all(view.ended for view in views):
                break
            pause(POLL_SECONDS)
    for view in views:
        if view.error:
            console.print(f"[red]{view.pipeline}[/]: {view.error}", highlight=False)
    return views


def _watch_lines(look: Look, console: Console, pause: Callable[[float], None]) -> list[View]:
    said: dict[str, tuple[object, ...]] = {}
    while True:
        views = list(look())
        for view in views:
            news = (view.state, view.slices_completed, view.slices_failed, view.rows)
            if said.get(view.id) != news:
                said[view.id] = news
                console.print(line_of(view), highlight=False, markup=False, soft_wrap=True)
        if all(view.ended for view in views):
            return views
        pause(2 * POLL_SECONDS)


class _Title(ProgressColumn):
    def __init__(self, narrow: bool) -> None:
        super().__init__(Column(no_wrap=True))
        self._narrow = narrow

    def render(self, task: Task) -> Text:
        view: View = task.fields["view"]
        subject = "" if self._narrow else f" {view.subject}"
        colour = _COLOURS.get(view.state, "cyan")
        return Text.assemble((view.pipeline, "bold"), subject, " ", (view.state, colour))


class _Figure(ProgressColumn):
    """One figure of the view that a bar stands for."""

    def __init__(self, name: str) -> None:
        super().__init__(Column(no_wrap=True, justify="right"))
        self._name = name

    def render(self, task: Task) -> Text:
        view: View = task.fields["view"]
        return Text(self._figure(view), style="dim" if view.ended else "")

    def _figure(self, view: View) -> str:
        if self._name == "slices":
            noun = "dates" if view.kind == "transfer" else "slices"
            return f"{view.slices_completed}/{view.slices_total} {noun}"
        if self._name == "rows":
            return f"{view.rows:,} rows"
        if self._name == "rate":
            return f"{view.rows_per_second or 0:,.0f}/s"
        return "" if view.ended else f"{spoken_seconds(view.eta_seconds)} left"
