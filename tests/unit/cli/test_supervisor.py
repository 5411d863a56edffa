"""The worker beside the server: restarted when it dies, stopped with it, never orphaned."""

import subprocess
import sys

from refill.cli.supervisor import Supervisor, as_environment
from refill.settings import Settings
from tests.waiting import until


def sleeper() -> "subprocess.Popen[bytes]":
    """Ends with its standard input, as a worker does."""
    return subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    )


def test_a_worker_that_dies_is_started_again() -> None:
    started: list[subprocess.Popen[bytes]] = []

    def spawn() -> "subprocess.Popen[bytes]":
        started.append(sleeper())
        return started[-1]

    supervisor = Supervisor(spawn, grace_seconds=5)
    supervisor.start()
    try:
        until(lambda: len(started) == 1, "a worker")
        started[0].kill()
        until(lambda: len(started) == 2, "another worker")
        assert started[1].poll() is None
    finally:
        supervisor.stop()
    assert started[1].poll() is not None
    assert len(started) == 2


def test_a_stop_before_the_start_starts_nothing() -> None:
    started: list[int] = []

    def spawn() -> "subprocess.Popen[bytes]":
        started.append(1)
        return sleeper()

    supervisor = Supervisor(spawn, grace_seconds=1)
    supervisor._stopping.set()
    supervisor.start()
    supervisor.stop()
    assert started == []


def test_settings_reach_the_worker_whole() -> None:
    settings = Settings.model_validate(
        {"home": "/somewhere", "slots": 3, "secret_key": "hush", "allow_private_hosts": True}
    )
    environment = as_environment(settings)
    assert environment["REFILL_SECRET_KEY"] == "hush"
    assert environment["REFILL_ALLOW_PRIVATE_HOSTS"] == "True"
    assert "REFILL_SPARK_REMOTE" not in environment
    assert environment["REFILL_SLOTS"] == "3"
