"""What is shown of a backfill, and how a command ends."""

import io
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console

from refill.cli.output import ExitCode
from refill.cli.view import View, spoken_seconds, view_sink_backfill, view_transfer_backfill
from refill.cli.watch import line_of, watch
from tests.unit.cli.samples import sink_backfill, transfer_backfill

DONE = {"total": 4, "completed": 4, "failed": 0, "running": 0}


def ended_sink(**changed: Any) -> View:
    return view_sink_backfill(
        sink_backfill(state="completed", progress=1.0, slices=DONE, eta_seconds=None, **changed)
    )


@pytest.mark.parametrize(
    ("view", "code"),
    [
        (ended_sink(), ExitCode.DONE),
        (view_sink_backfill(sink_backfill(state="cancelled")), ExitCode.CANCELLED),
        (view_sink_backfill(sink_backfill(state="failed", error="Gone.")), ExitCode.ERROR),
        (view_transfer_backfill(transfer_backfill(status="COMPLETED")), ExitCode.DONE),
        (view_transfer_backfill(transfer_backfill(status="CANCELLED")), ExitCode.CANCELLED),
        (
            view_transfer_backfill(transfer_backfill(status="FAILED", transfer_runs_failed=2)),
            ExitCode.FAILED_DATES,
        ),
        (view_transfer_backfill(transfer_backfill(status="FAILED")), ExitCode.ERROR),
    ],
)
def test_how_it_ended_is_the_exit_code(view: View, code: ExitCode) -> None:
    assert view.exit_code is code


def test_a_paused_transfer_backfill_is_shown_as_paused() -> None:
    raw = transfer_backfill(status="SCHEDULED", paused_time="2026-01-01T00:00:00Z")
    assert view_transfer_backfill(raw).state == "paused"


def test_a_failed_date_is_named_with_its_error() -> None:
    report = [{"transfer_run_date": "2026-01-02", "error": "The source is away."}]
    view = view_transfer_backfill(transfer_backfill(status="FAILED", error_report=report))
    assert "2026-01-02: The source is away." in line_of(view)


def test_a_line_says_rate_and_time_left() -> None:
    line = line_of(view_sink_backfill(sink_backfill()))
    assert "25.0%" in line
    assert "50 rows/s" in line
    assert "left 0:06" in line


@pytest.mark.parametrize(
    ("seconds", "said"), [(None, "–"), (0.2, "0:00"), (61, "1:01"), (3_725, "1:02:05")]
)
def test_time_left_is_said_shortly(seconds: float | None, said: str) -> None:
    assert spoken_seconds(seconds) == said


def looks(*views: View) -> Iterator[list[View]]:
    return iter([[view] for view in views])


def test_elsewhere_than_on_a_terminal_a_line_is_printed_only_for_news() -> None:
    out = io.StringIO()
    running = view_sink_backfill(sink_backfill())
    sequence = looks(running, running, running, ended_sink())
    ended = watch(lambda: next(sequence), Console(file=out), pause=lambda _: None)
    lines = out.getvalue().splitlines()
    assert [view.state for view in ended] == ["completed"]
    assert len(lines) == 2
    assert lines[-1].startswith(f"{running.id} orders public.orders: completed, 100.0%")


def test_on_a_terminal_there_are_bars() -> None:
    out = io.StringIO()
    sequence = looks(view_sink_backfill(sink_backfill()), ended_sink(rows_processed_count=400))
    terminal = Console(file=out, force_terminal=True, width=140)
    watch(lambda: next(sequence), terminal, pause=lambda _: None)
    shown = out.getvalue()
    assert "━" in shown
    assert "4/4 slices" in shown
    assert "400 rows" in shown
