"""`refill demo`: a million rows and a year of dates, backfilled before your eyes, then counted."""

import fcntl
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from refill.cli.output import ExitCode, Json, Stopped, print_json

Directory = Annotated[Path, typer.Option("--dir", help="Where everything of it goes.")]
Exit = Annotated[bool, typer.Option("--exit", help="End when it is done: 0 if the counts agree.")]
Rows = Annotated[int, typer.Option(min=1, hidden=True)]
Days = Annotated[int, typer.Option(min=1, max=3660, hidden=True)]
PerDay = Annotated[int, typer.Option("--per-day", min=1, hidden=True)]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The port of its server; 0: any.")]
Picture = Annotated[Path | None, typer.Option(hidden=True, help="Draw the terminal as SVG.")]


def demo(
    directory: Directory = Path(".demo"),
    leave: Exit = False,
    json: Json = False,
    rows: Rows = 1_000_000,
    days: Days = 365,
    per_day: PerDay = 1_000,
    port: Port = 7376,
    picture: Picture = None,
) -> None:
    """Watch both public APIs backfill a PostgreSQL through Spark. Needs nothing but refill."""
    from refill.cli.demo.run import Scale, run_demo
    from refill.cli.demo.stage import Stage

    root = directory.absolute()
    stage = Stage(quiet=json)
    scale = Scale(rows=rows, days=days, per_day=per_day, today=datetime.now(UTC).date())
    with ExitStack() as stack:
        stack.enter_context(_alone(root))
        stack.enter_context(_stopped_by_sigterm())
        outcome = run_demo(root, scale, stage, stack, port)
        if picture:
            stage.draw(picture)
        if json:
            print_json(outcome.as_record())
        if not leave:
            stage.invite(outcome.url, root)
            outcome.server.wait()
    if not outcome.equal:
        raise Stopped("The counts at the destinations differ from the source's.", ExitCode.ERROR)


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = (root / "lock").open("w")
    except OSError as error:
        raise Stopped(f"{root} cannot be written ({error.strerror}); choose --dir.") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Stopped(f"A demo already runs in {root}; stop it, or choose --dir.") from None
        yield


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """As Ctrl-C does: what the demo started is stopped with it."""

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
