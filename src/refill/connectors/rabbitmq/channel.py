"""A channel with publisher confirms, a window of them at a time.

pika's blocking channel waits for every single confirm; here the connection lives in a thread of
its own, which also keeps its heartbeat while the source is slow.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pika
from pika.exceptions import (
    AMQPConnectionError,
    AMQPError,
    AuthenticationError,
    ProbableAccessDeniedError,
    ProbableAuthenticationError,
)

from refill.domain.errors import RefillError, SinkRefused, SinkUnavailable

WINDOW = 2000
OPEN_SECONDS = 15.0
CONFIRM_SECONDS = 60.0
CLOSE_SECONDS = 5.0
_REFUSALS = (AuthenticationError, ProbableAuthenticationError, ProbableAccessDeniedError)
# reply codes that another try does not change: no access, not found, precondition failed
_REFUSED_CODES = frozenset({403, 404, 406, 530})


class Published(NamedTuple):
    exchange: str
    routing_key: str
    body: bytes
    message_id: str
    headers: Mapping[str, str]


class ConfirmedChannel:
    def __init__(self, parameters: pika.ConnectionParameters, place: str) -> None:
        self._place = place
        self._changed = threading.Condition()
        self._failure: RefillError | None = None
        self._ready = False
        self._ended = False
        self._checked = False
        self._tag = 0
        self._published = 0
        self._confirmed = 0
        self._unconfirmed: set[int] = set()
        self._channel: Any = None
        self._connection = pika.SelectConnection(
            parameters,
            on_open_callback=self._on_open,
            on_open_error_callback=self._on_open_error,
            on_close_callback=self._on_closed,
        )
        self._thread = threading.Thread(target=self._run, name="refill-rabbitmq", daemon=True)
        self._thread.start()
        try:
            self._wait(lambda: self._ready, OPEN_SECONDS, "does not answer")
        except BaseException:
            # nobody else ever gets to know of it: the thread would go on for good
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        return self._failure is None and self._ready

    def check_exchange(self, exchange: str) -> None:
        """That it is there; the default exchange always is."""
        if not exchange:
            return
        self._checked = False

        def done(_: Any) -> None:
            with self._changed:
                self._checked = True
                self._changed.notify_all()

        self._soon(lambda: self._channel.exchange_declare(exchange, passive=True, callback=done))
        self._wait(lambda: self._checked, OPEN_SECONDS, "does not answer")

    def publish(self, messages: Sequence[Published]) -> None:
        """Returns when at most a window of them is unconfirmed."""
        for start in range(0, len(messages), WINDOW):
            window = messages[start : start + WINDOW]
            self._wait(self._has_room, CONFIRM_SECONDS, "is too slow")
            self._soon(partial(self._send, window))
            with self._changed:
                self._published += len(window)

    def _has_room(self) -> bool:
        return self._published - self._confirmed < WINDOW

    def wait_confirmed(self) -> None:
        """Returns when the broker has all that was published."""
        self._wait(
            lambda: self._confirmed == self._published, CONFIRM_SECONDS, "confirms too slowly"
        )

    def close(self) -> None:
        """By a goodbye; without one where the broker does not answer it."""
        for end in (self._end, self._connection.ioloop.stop):
            if self._thread.is_alive():
                self._soon(end)
                self._thread.join(CLOSE_SECONDS)

    def _send(self, messages: Sequence[Published]) -> None:
        """In the connection's thread."""
        if self._failure is not None:
            return
        try:
            for exchange, routing_key, body, message_id, headers in messages:
                properties = pika.BasicProperties(
                    content_type="application/json",
                    delivery_mode=2,
                    message_id=message_id,
                    headers=dict(headers) or None,
                )
                self._channel.basic_publish(exchange, routing_key, body, properties, mandatory=True)
                self._tag += 1  # as the broker counts them
                self._unconfirmed.add(self._tag)
        except AMQPError as exc:
            self._fail(SinkUnavailable(f"{self._place} could not be used: {exc!r}"))

    def _run(self) -> None:
        loop = self._connection.ioloop
        try:
            loop.start()
        finally:
            with self._changed:
                self._ended = True
            loop.close()

    def _on_open(self, connection: Any) -> None:
        connection.channel(on_open_callback=self._on_channel)

    def _on_channel(self, channel: Any) -> None:
        self._channel = channel
        channel.add_on_close_callback(self._on_channel_closed)
        channel.add_on_return_callback(self._on_return)
        channel.confirm_delivery(self._on_confirm, callback=self._on_confirming)

    def _on_confirming(self, _: Any) -> None:
        with self._changed:
            self._ready = True
            self._changed.notify_all()

    def _on_confirm(self, frame: Any) -> None:
        method = frame.method
        tag = method.delivery_tag
        tags = {t for t in self._unconfirmed if t <= tag} if method.multiple else {tag}
        if isinstance(method, pika.spec.Basic.Nack):
            self._fail(SinkUnavailable(f"{self._place} could not keep a message; tried again."))
            return
        with self._changed:
            self._confirmed += len(tags & self._unconfirmed)
            self._unconfirmed -= tags
            self._changed.notify_all()

    def _on_return(self, _channel: Any, method: Any, _properties: Any, _body: bytes) -> None:
        self._fail(
            SinkRefused(
                f"{self._place}: the exchange {method.exchange!r} leads the routing key "
                f"{method.routing_key!r} to no queue; bind one, then retry the backfill."
            )
        )

    def _on_channel_closed(self, _channel: Any, reason: Any) -> None:
        code = getattr(reason, "reply_code", 0)
        said = getattr(reason, "reply_text", reason)
        kind = SinkRefused if code in _REFUSED_CODES else SinkUnavailable
        self._fail(kind(f"{self._place} closed the channel: {said}"))

    def _on_open_error(self, connection: Any, error: Any) -> None:
        refused = isinstance(error, _REFUSALS) or _code(error) in _REFUSED_CODES
        if refused:
            self._fail(SinkRefused(f"{self._place} refused us: {error!r}"))
        else:
            self._fail(SinkUnavailable(f"{self._place} could not be reached: {error!r}"))
        connection.ioloop.stop()

    def _on_closed(self, connection: Any, reason: Any) -> None:
        self._fail(SinkUnavailable(f"{self._place} closed the connection: {reason!r}"))
        connection.ioloop.stop()

    def _fail(self, failure: RefillError) -> None:
        with self._changed:
            self._failure = self._failure or failure
            self._changed.notify_all()

    def _end(self) -> None:
        if self._connection.is_open:
            self._connection.close()
        elif not self._connection.is_closing:
            self._connection.ioloop.stop()

    def _soon(self, call: Callable[[], Any]) -> None:
        with self._changed:
            if not self._ended:
                self._connection.ioloop.add_callback_threadsafe(call)

    def _wait(self, until: Callable[[], bool], seconds: float, complaint: str) -> None:
        deadline = time.monotonic() + seconds
        with self._changed:
            while not until():
                if self._failure is not None:
                    raise self._failure
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    raise SinkUnavailable(f"{self._place} {complaint}; the slice is tried again.")
            if self._failure is not None:
                raise self._failure


def _code(error: Any) -> int:
    if isinstance(error, AMQPConnectionError) and error.args:
        return int(getattr(error.args[0], "reply_code", 0) or 0)
    return 0
