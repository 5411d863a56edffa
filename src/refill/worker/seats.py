"""Who may plan or seal at once: a few seats for all, and one more for each team that has none."""

import threading
from collections import Counter

AT_ONCE = 4  # one system that is slow to answer must not hold up the others
IN_ALL = 16  # with those that teams without a seat get beyond that


class Seats:
    """One thread takes, several leave."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: Counter[int] = Counter()  # by team

    def full_for(self) -> frozenset[int] | None:
        """Teams that get no further seat now; None: nobody does."""
        with self._lock:
            taken = self._taken.total()
            if taken >= IN_ALL:
                return None
            return frozenset(self._taken) if taken >= AT_ONCE else frozenset()

    def take(self, team_id: int) -> None:
        with self._lock:
            self._taken[team_id] += 1

    def leave(self, team_id: int) -> None:
        with self._lock:
            self._taken[team_id] -= 1
            if not self._taken[team_id]:
                del self._taken[team_id]
