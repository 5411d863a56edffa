"""Calls into the JVM that nothing can interrupt: waited for in another thread, for so long."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Overdue(Exception):
    """It goes on, and nobody waits for it any more."""


class Analysis(Generic[T]):
    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._done = threading.Event()
        self._found: list[T] = []
        self._error: BaseException | None = None

    def result(self, seconds: float) -> T:
        """What the call returns or raises; Overdue when it does neither in time."""
        threading.Thread(target=self._run, name="analysis", daemon=True).start()
        if not self._done.wait(seconds):
            raise Overdue
        if self._error is not None:
            raise self._error
        return self._found[0]

    def _run(self) -> None:
        try:
            self._found.append(self._call())
        except BaseException as exc:
            self._error = exc
        finally:
            self._done.set()
