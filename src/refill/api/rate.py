"""How many requests a key may still make in this hour."""

import threading
from dataclasses import dataclass
from datetime import datetime

_HOUR_SECONDS = 3600
SHOWN_WITHOUT_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class Allowance:
    limit: int
    remaining: int
    retry_after_seconds: int | None = None  # set when there is nothing left


class RateLimiter:
    """Counts per key in fixed hours, in this process: several API processes each count alone."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._hour = -1
        self._used: dict[int, int] = {}

    def take(self, key_id: int, now: datetime) -> Allowance:
        if self.limit == 0:  # none: what is shown is the most that a client may expect
            return Allowance(SHOWN_WITHOUT_LIMIT, SHOWN_WITHOUT_LIMIT)
        seconds = int(now.timestamp())
        hour = seconds // _HOUR_SECONDS
        with self._lock:
            if hour != self._hour:
                self._hour = hour
                self._used.clear()
            used = self._used.get(key_id, 0)
            if used >= self.limit:
                wait = max(1, (hour + 1) * _HOUR_SECONDS - seconds)
                return Allowance(self.limit, 0, wait)
            self._used[key_id] = used + 1
        return Allowance(self.limit, self.limit - used - 1)
