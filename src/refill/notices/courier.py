"""Brings stored events to their receivers: at least once, and without waiting for any of them."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

from refill.domain.errors import RefillError
from refill.domain.notice import Delivery, Receiver
from refill.notices.senders import TIMEOUT_SECONDS, Senders
from refill.settings import Settings
from refill.store.port import Store

log = logging.getLogger(__name__)

AT_ONCE = 8
LEASE_SECONDS = 6 * TIMEOUT_SECONDS  # a worker that dies leaves it to the next after that
MAX_ATTEMPTS = 12
FIRST_RETRY_SECONDS = 5.0
LAST_RETRY_SECONDS = 3600.0
FAILURES_THAT_NEED_SOMEBODY = 3


class Courier:
    def __init__(self, store: Store, settings: Settings, senders: Senders | None = None) -> None:
        self._store = store
        self._stalled_seconds = settings.stalled_minutes * 60.0
        self._senders = senders or Senders(settings)
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="courier")
        self._lock = threading.Lock()
        self._busy: set[str] = set()

    def tick(self) -> None:
        """Looks what there is to tell, and hands it to threads: nobody waits for a receiver."""
        self._store.note_troubles(self._stalled_seconds, FAILURES_THAT_NEED_SOMEBODY)
        while self._store.spread_events():
            pass
        with self._lock:
            busy = frozenset(self._busy)
        free = AT_ONCE - len(busy)
        if free <= 0:
            return
        for delivery, receiver in self._store.claim_deliveries(free, LEASE_SECONDS, busy):
            with self._lock:
                self._busy.add(delivery.place)
            self._threads.submit(self._bring, delivery, receiver)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _bring(self, delivery: Delivery, receiver: Receiver | None) -> None:
        try:
            error = self._tried(delivery, receiver)
            again = None if error is None else retry_seconds(delivery.attempts + 1)
            self._store.end_delivery(delivery.id, error, again)
        except Exception:
            # it is due again when its lease is over
            log.exception("a notification is left over", extra={"action": "notify"})
        finally:
            with self._lock:
                self._busy.discard(delivery.place)

    def _tried(self, delivery: Delivery, receiver: Receiver | None) -> str | None:
        try:
            if delivery.receiver_id is None:
                self._senders.send_mail(delivery.event, delivery.recipients)
            elif receiver is not None:
                self._senders.send(delivery.event, receiver)
        except RefillError as exc:
            log.warning("a notification was not taken: %s", exc.message, extra={"action": "notify"})
            return exc.message
        return None


def retry_seconds(attempts: int) -> float | None:
    """Longer each time; None: it was tried often enough."""
    if attempts >= MAX_ATTEMPTS:
        return None
    return float(min(LAST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** (attempts - 1)))
