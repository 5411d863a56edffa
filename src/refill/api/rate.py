"""How many requests a key may still make in this hour, and how many wrong keys an address."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

_HOUR_SECONDS = 3600
SHOWN_WITHOUT_LIMIT = 10_000
_PORTIONS = 100  # so many times an hour, at most, a process asks the others about one key

# (what is counted, hour, how many more) → how many were used before; None: nobody shares
Share = Callable[[str, int, int], int]


@dataclass(frozen=True, slots=True)
class Allowance:
    limit: int  # 0: there is none
    remaining: int
    retry_after_seconds: int | None = None  # set when there is nothing left


@dataclass(slots=True)
class _Used:
    taken: int = 0  # of the whole, by all processes, when this one last asked
    portion: int = 0  # of them, for this process
    spent: int = 0  # of the portion


class RateLimiter:
    """Counts in fixed hours. Processes that share a store take the limit from it in portions: all
    together never give out more than it."""

    def __init__(self, limit: int, share: Share | None = None) -> None:
        self.limit = limit
        self._share = share
        self._portion = max(1, limit // _PORTIONS) if share else limit
        self._lock = threading.Lock()
        self._hour = -1
        self._used: dict[str, _Used] = {}

    def take(self, counted: str, now: datetime) -> Allowance:
        if self.limit == 0:  # none: what is shown is the most that a client may expect
            return Allowance(SHOWN_WITHOUT_LIMIT, SHOWN_WITHOUT_LIMIT)
        seconds = int(now.timestamp())
        hour = seconds // _HOUR_SECONDS
        with self._lock:
            if hour != self._hour:
                self._hour = hour
                self._used.clear()
            used = self._used.setdefault(counted, _Used())
            if used.spent >= used.portion and used.taken < self.limit:
                before = self._share(counted, hour, self._portion) if self._share else 0
                used.portion = max(0, min(self._portion, self.limit - before))
                used.taken, used.spent = before + used.portion, 0
                if not used.portion:
                    used.taken = self.limit
            if used.spent >= used.portion:
                wait = max(1, (hour + 1) * _HOUR_SECONDS - seconds)
                return Allowance(self.limit, 0, wait)
            used.spent += 1
            return Allowance(self.limit, self.limit - used.taken + used.portion - used.spent)
