"""`refill worker`: claims slices and runs them on Spark until it is told to stop."""

import os
import signal
import threading
from contextlib import suppress
from typing import Annotated

import typer

from refill.bootstrap import make_worker, opened_store
from refill.cli.options import WORKER, with_settings
from refill.logs import configure_logs
from refill.settings import Settings


@with_settings(*WORKER)
def worker(
    settings: Settings,
    with_parent: Annotated[
        bool, typer.Option("--with-parent", hidden=True, help="End when standard input does.")
    ] = False,
) -> None:
    """Run a worker. SIGTERM lets running slices finish, as long as the grace time lasts."""
    configure_logs(settings.log_format, settings.log_level)
    with opened_store(settings) as store:
        worker = make_worker(settings, store)

        def stop(*_: object) -> None:
            worker.stop()
            if not worker.ready.is_set():
                _leave_at_once()

        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, stop)
        if with_parent:
            threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
        worker.run()


def _leave_at_once() -> None:
    """Spark is still starting and nothing is claimed: there is nothing to wait for. A JVM that
    is left half-way in its start does not end by itself."""
    import psutil  # only here: every command would pay for it

    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            child.kill()
    os._exit(0)


def _end_with_parent() -> None:
    """The pipe to the server ends with it, even when it was killed: go too, cleanly."""
    # not through sys.stdin: its lock, held here, would break the interpreter's shutdown
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
