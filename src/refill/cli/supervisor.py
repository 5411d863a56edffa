"""Keeps the worker running in a process of its own: started again when it dies, never orphaned."""

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable

from pydantic import SecretStr

from refill.settings import Settings

log = logging.getLogger(__name__)

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0
STEADY_SECONDS = 60.0  # a worker that lived this long starts the waiting anew

Spawn = Callable[[], "subprocess.Popen[bytes]"]


def spawn_worker(settings: Settings) -> "subprocess.Popen[bytes]":
    """Settings travel by the environment: arguments can be read by everyone on the machine."""
    return subprocess.Popen(
        [sys.executable, "-m", "refill.cli", "worker", "--with-parent"],
        env={**os.environ, **as_environment(settings)},
        stdin=subprocess.PIPE,  # its end tells the worker that we are gone, however we went
        start_new_session=True,  # Ctrl-C is ours to pass on, once
    )


def as_environment(settings: Settings) -> dict[str, str]:
    found = {}
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, SecretStr):
            value = value.get_secret_value()
        if value is not None:
            found[f"REFILL_{name.upper()}"] = str(value)
    return found


class Supervisor:
    def __init__(
        self, spawn: Spawn, *, grace_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._spawn = spawn
        self._grace_seconds = grace_seconds
        self._clock = clock
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """SIGTERM, then as long as running slices are given, then an end."""
        self._stopping.set()
        with self._lock:
            process = self._process
        if process is not None:
            process.terminate()
            try:
                process.wait(self._grace_seconds + 10)
            except subprocess.TimeoutExpired:
                log.warning("worker did not stop in time", extra={"action": "kill_worker"})
                process.kill()
        if self._thread.ident is not None:  # stopped before the API ever answered: not started
            self._thread.join(5)

    def _run(self) -> None:
        wait = FIRST_WAIT_SECONDS
        while not self._stopping.is_set():
            began = self._clock()
            code = self._watch_one()
            if self._stopping.is_set():
                return
            wait = FIRST_WAIT_SECONDS if self._clock() - began > STEADY_SECONDS else wait
            log.warning(
                "the worker ended with %s; it is started again in %.1f s",
                code,
                wait,
                extra={"action": "restart_worker", "exit_code": code},
            )
            self._stopping.wait(wait)
            wait = min(2 * wait, LONGEST_WAIT_SECONDS)

    def _watch_one(self) -> int:
        with self._lock:
            if self._stopping.is_set():
                return 0
            self._process = self._spawn()
        code = self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        return code
