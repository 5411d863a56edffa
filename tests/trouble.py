"""What goes wrong in a made-up system: told beforehand, met by whoever comes to that point."""

import threading
from collections import Counter
from dataclasses import dataclass, field

PATIENCE_SECONDS = 60.0  # a hang that nobody ends is a test that failed


@dataclass
class Connection:
    """What is blocked on it comes back when it is closed."""

    closed: bool = False


@dataclass
class Hang:
    """Somebody stands still at its point until it is released, or its connection is closed."""

    deaf: bool = False  # not even that ends it
    reached: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)
    released: bool = False


@dataclass
class _Plan:
    skip: int  # so many pass first
    times: int
    what: Exception | Hang


class Closed(Exception):
    """The connection was closed under the hands of who used it."""


class Trouble:
    """Safe to use from several threads. `met` counts who came by, whether or not it went well."""

    def __init__(self) -> None:
        self.met: Counter[str] = Counter()
        self._plans: dict[str, list[_Plan]] = {}
        self._moved = threading.Condition()

    def fail(self, point: str, error: Exception, *, times: int = 1, skip: int = 0) -> None:
        self._plans.setdefault(point, []).append(_Plan(skip, times, error))

    def hang(self, point: str, *, times: int = 1, skip: int = 0, deaf: bool = False) -> Hang:
        hang = Hang(deaf)
        self._plans.setdefault(point, []).append(_Plan(skip, times, hang))
        return hang

    def release(self, hang: Hang) -> None:
        with self._moved:
            hang.released = True
            self._moved.notify_all()

    def close(self, connection: Connection) -> None:
        with self._moved:
            connection.closed = True
            self._moved.notify_all()

    def meet(self, point: str, connection: Connection) -> None:
        """Raises, stands still, or does nothing, as was told; Closed on a closed connection."""
        with self._moved:
            self.met[point] += 1
            planned = self._next(point)
            if isinstance(planned, Hang):
                planned.reached.set()
                self._moved.wait_for(
                    lambda: planned.released or (connection.closed and not planned.deaf),
                    PATIENCE_SECONDS,
                )
                planned.left.set()
            if connection.closed:
                raise Closed
        if isinstance(planned, Exception):
            raise planned

    def _next(self, point: str) -> Exception | Hang | None:
        for plan in self._plans.get(point, ()):
            if plan.skip:
                plan.skip -= 1
            elif plan.times:
                plan.times -= 1
                return plan.what
        return None
