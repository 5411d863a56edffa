"""Wall time, whole-machine CPU seconds, and the memory of a process tree."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil


@dataclass
class Pass:
    """One timed run of one contender."""

    rows: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def rate(self) -> float:
        return self.rows / self.seconds if self.seconds else 0.0


@dataclass
class Memory:
    """Peak PSS of a process tree while it was watched, in bytes."""

    peak_bytes: int = 0
    parts: dict[str, int] = field(default_factory=dict)


def busy_seconds() -> float:
    """CPU seconds that the whole machine has spent, the database included."""
    fields = [int(part) for part in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    idle = fields[3] + fields[4]
    return float(sum(fields[:8]) - idle) / os.sysconf("SC_CLK_TCK")


def timed(run: Callable[[], "int | Pass"]) -> Pass:
    """Runs it once; `run` returns how many rows it moved, or the pass as it measured it itself."""
    cpu, began = busy_seconds(), time.perf_counter()
    outcome = run()
    if isinstance(outcome, Pass):
        return outcome
    return Pass(outcome, time.perf_counter() - began, busy_seconds() - cpu)


@contextmanager
def watching_memory(pid: int, every_seconds: float = 0.25) -> Iterator[Memory]:
    """Samples the PSS of a process and all below it until the block ends."""
    memory, stop = Memory(), threading.Event()

    def sample() -> None:
        while not stop.wait(every_seconds):
            parts = _tree_pss(pid)
            if sum(parts.values()) > memory.peak_bytes:
                memory.peak_bytes, memory.parts = sum(parts.values()), parts

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield memory
    finally:
        stop.set()
        thread.join()


def _tree_pss(pid: int) -> dict[str, int]:
    parts: dict[str, int] = {}
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return parts
    for process in family:
        try:
            pss = process.memory_full_info().pss
            parts[process.name()] = parts.get(process.name(), 0) + pss
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return parts
