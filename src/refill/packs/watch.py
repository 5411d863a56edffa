"""Ends what stands still inside a task: its connections first, then the process that runs it."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from refill.connectors.kit.pulse import PULSE, Pulse
from refill.domain.errors import Stalled

log = logging.getLogger(__name__)

LET_GO_SECONDS = 10.0  # for what was cut to come back
STALLED_EXIT = 75  # of a Python worker that had to be ended


class Watch:
    """Beats with every batch; `seconds` without one, and what is over it is cut."""

    def __init__(
        self,
        seconds: float,
        *,
        end: Callable[[], None] | None = None,
        pulse: Pulse = PULSE,
        let_go_seconds: float = LET_GO_SECONDS,
    ) -> None:
        self.seconds = seconds
        self.beats = 0
        self.stalled = False
        self._end = end
        self._pulse = pulse
        self._let_go_seconds = min(let_go_seconds, seconds)
        self._over = threading.Event()

    def beat(self) -> None:
        self.beats += 1
        # what was cut came back: from here on it is another slice's time
        self.stalled = False

    def beating(self, check: Callable[[], None]) -> Callable[[], None]:
        def beat() -> None:
            check()
            self.beat()

        return beat

    def verdict(self, exc: Exception) -> Exception:
        """What is wrong: that it was ended, where it was, and not what its ending looked like."""
        if not self.stalled:
            return exc
        return stalled(self.seconds)

    @contextmanager
    def over(self, cut: Callable[[], None]) -> Iterator[None]:
        thread = threading.Thread(target=self._look, args=(cut,), name="watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()

    def _look(self, cut: Callable[[], None]) -> None:
        while self._stands_still(self.seconds):
            self.stalled = True
            log.warning("cutting what stands still", extra={"action": "stalled"})
            # closing may wait for the same system: not in the thread that may have to end it all
            threading.Thread(target=cut, name="cut", daemon=True).start()
            if self._stands_still(self._let_go_seconds, patient=False) and self._end is not None:
                log.error("what stands still could not be cut", extra={"action": "ended"})
                self._end()

    def _stands_still(self, seconds: float, *, patient: bool = True) -> bool:
        """Whether there was no beat for so long; without patience, False at the next one."""
        seen = (self.beats, self._pulse.beats)
        deadline = time.monotonic() + seconds
        while not self._over.wait(min(0.5, max(0.01, seconds / 10))):
            now = (self.beats, self._pulse.beats)
            if now != seen:
                if not patient:
                    return False
                seen, deadline = now, time.monotonic() + seconds
            elif time.monotonic() >= deadline:
                return True
        return False


def stalled(seconds: float) -> Stalled:
    return Stalled(
        f"It made no progress for {seconds:g} s and was ended; see that the source and the "
        "destination answer, and that their queries end."
    )


def end_process() -> None:
    """Python cannot end a thread that waits inside a driver: the process goes with it."""
    os._exit(STALLED_EXIT)
