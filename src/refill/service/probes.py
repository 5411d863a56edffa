"""Questions to tenants' systems: asked in threads of their own, each with an end.

A system that authenticates and then says nothing costs its own team a share, and nobody else.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from refill.domain.errors import RateLimited

logger = logging.getLogger(__name__)

# The API answers from 40 threads. Those that wait for a probe are fewer, so that some are always
# there for whoever asks nothing of a tenant's system.
WAITING_AT_ONCE = 24
FIRST_COME = 16  # from here on, only teams that ask nothing yet

T = TypeVar("T")


class Closeable(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=Closeable)


class NoAnswer(Exception):
    """The system did not answer in time. Whoever asked says so in the words of what was asked."""


@dataclass(slots=True)
class _Question(Generic[C, T]):
    open: Callable[[], C]
    use: Callable[[C], T]
    answered: threading.Event = field(default_factory=threading.Event)
    answer: T | None = None
    error: BaseException | None = None
    opened: C | None = None
    given_up: bool = False


class Probes:
    """At most `per_team` questions of a team are unanswered at a time, those that nobody waits
    for any longer among them."""

    def __init__(self, *, seconds: float, per_team: int) -> None:
        self.seconds = seconds
        self._per_team = per_team
        self._lock = threading.Lock()
        self._unanswered: Counter[int] = Counter()  # threads by team
        self._waiting = 0

    def ask(
        self,
        team_id: int,
        open: Callable[[], C],
        use: Callable[[C], T],
        *,
        seconds: float | None = None,
        goes_on: bool = False,
    ) -> T:
        """What `use` returns or raises of what was opened, which is closed in any case. NoAnswer
        after `seconds`: then its connection is cut, unless it may go on by itself, up to the limit
        of all. RateLimited when too many of the team's are unanswered."""
        question = _Question(open, use)
        limit = self.seconds if seconds is None else min(seconds, self.seconds)
        self._admit(team_id)
        try:
            self._start("probe", self._run, question, team_id)
            if not question.answered.wait(limit):
                self._give_up(question, after=self.seconds - limit if goes_on else 0.0)
                raise NoAnswer
        finally:
            with self._lock:
                self._waiting -= 1
        if question.error is not None:
            raise question.error
        return question.answer  # type: ignore[return-value]

    def _admit(self, team_id: int) -> None:
        with self._lock:
            held = self._unanswered[team_id]
            if held >= self._per_team:
                raise RateLimited(
                    f"{held} questions to this team's systems are not answered yet; "
                    "try again when they are.",
                    max(1, round(self.seconds)),
                )
            if self._waiting >= (FIRST_COME if held else WAITING_AT_ONCE):
                raise RateLimited("Too many systems are being asked at once; try again shortly.", 1)
            self._unanswered[team_id] += 1
            self._waiting += 1

    def _run(self, question: _Question[Any, Any], team_id: int) -> None:
        try:
            opened = question.open()
            with self._lock:
                question.opened = opened
                late = question.given_up
            try:
                if not late:
                    question.answer = question.use(opened)
            finally:
                _close(opened)
        except BaseException as exc:
            question.error = exc
        finally:
            with self._lock:
                self._unanswered[team_id] -= 1
                if not self._unanswered[team_id]:
                    del self._unanswered[team_id]
            question.answered.set()

    def _give_up(self, question: _Question[Any, Any], after: float) -> None:
        """Cuts what is open, from another thread: its own waits in it, and closing may wait too."""

        def cut() -> None:
            if question.answered.wait(after):
                return
            with self._lock:
                question.given_up = True
                opened = question.opened
            if opened is not None:
                _close(opened)

        self._start("probe-end", cut)

    def _start(self, name: str, target: Callable[..., None], *args: object) -> None:
        # daemons, and not a pool: a stop of the server waits for no tenant's system
        threading.Thread(target=target, args=args, name=name, daemon=True).start()


def _close(opened: Closeable) -> None:
    try:
        opened.close()
    except Exception:
        logger.debug("closing failed", exc_info=True)
