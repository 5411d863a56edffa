"""Servers that are one process in the foreground: started on free ports, ended by their id."""

import ctypes
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

# loaded here: between fork and exec nothing should be
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """For `preexec_fn`: a test run that is killed leaves no server behind. Linux ends the process
    with the very thread that started it, so start it from one that lasts."""
    prctl = getattr(_LIBC, "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running(
    command: Sequence[str],
    log: Path,
    ready: Callable[[], bool],
    *,
    environment: Mapping[str, str] | None = None,
    seconds: float = 60,
) -> Iterator["subprocess.Popen[bytes]"]:
    """The process, once it answers."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=environment
        )
    try:
        deadline = time.monotonic() + seconds
        while not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} did not start: {log.read_text()[-2000:]}")
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(15)


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
