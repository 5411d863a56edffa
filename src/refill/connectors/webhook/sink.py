"""Delivers slices by HTTP, a bounded number of requests at a time."""

import hashlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from refill.connectors.kit.contract import Context, Job
from refill.connectors.kit.message_sink import MessageSink, Outgoing, Tally
from refill.connectors.webhook import BATCH_SIZE, WebhookOptions
from refill.connectors.webhook.request import Receiver
from refill.connectors.webhook.route import Route

if TYPE_CHECKING:
    import polars as pl

BODY_BYTES = 4 * 1024 * 1024  # a batch is closed before it grows beyond


class WebhookSink(MessageSink):
    def __init__(self, options: WebhookOptions, context: Context) -> None:
        self._options = options
        self._network = context.network
        self._receiver: Receiver | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._sent: deque[Future[None]] = deque()

    def test(self) -> None:
        receiver, _ = self._open()
        receiver.reach()

    def begin(self, job: Job) -> Tally:
        self._open()
        self._sent.clear()
        return Tally()

    def send(self, job: Job, outgoing: Outgoing) -> None:
        receiver, pool = self._open()
        if job.sink_spec.group_columns and outgoing.keys is not None:
            self._send_in_lanes(job, outgoing, outgoing.keys)
            return
        for body, key, route in self._requests(job, outgoing):
            # no more on their way than the endpoint is meant to bear
            while len(self._sent) >= self._options.concurrency:
                self._sent.popleft().result()
            self._sent.append(pool.submit(receiver.post, body, key, route))

    def _send_in_lanes(self, job: Job, outgoing: Outgoing, groups: "pl.Series") -> None:
        """As many requests at once as ever, and those of a group one after the other."""
        receiver, pool = self._open()
        self.finish(job)  # nobody overtakes the portion before
        lanes = groups.fill_null("").hash() % self._options.concurrency

        def post_all(requests: list[tuple[bytes, str, Route]]) -> None:
            for body, key, route in requests:
                receiver.post(body, key, route)

        for lane in lanes.unique():
            requests = list(self._requests(job, outgoing.only(lanes == lane)))
            self._sent.append(pool.submit(post_all, requests))

    def finish(self, job: Job) -> None:
        while self._sent:
            self._sent.popleft().result()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        self._sent.clear()
        if self._receiver is not None:
            self._receiver.close()
            self._receiver = None

    def _open(self) -> tuple[Receiver, ThreadPoolExecutor]:
        if self._receiver is None or self._pool is None:
            self._receiver = Receiver(self._options, self._network)
            self._pool = ThreadPoolExecutor(self._options.concurrency, "refill-webhook")
        return self._receiver, self._pool

    def _requests(self, job: Job, outgoing: Outgoing) -> Iterator[tuple[bytes, str, Route]]:
        """(body, Idempotency-Key, route) of each request. The key is a hash of its messages' keys:
        rows that were read again, and fall into other batches, are no repeats of other rows."""
        values = outgoing.value_bytes()
        keys = outgoing.idempotency_keys.to_list()
        size = (job.sink_spec.batch_size or BATCH_SIZE) if self._options.batch else 1
        routes = _routes(outgoing)
        start = 0
        while start < len(values):
            end, length = start, 0
            while end < len(values) and end - start < size and routes[end] == routes[start]:
                length += len(values[end])
                if length > BODY_BYTES and end > start:
                    break
                end += 1
            body = values[start]
            if self._options.batch:
                body = b'{"data":[' + b",".join(values[start:end]) + b"]}"
            yield (
                body,
                hashlib.sha256("\n".join(keys[start:end]).encode()).hexdigest(),
                routes[start],
            )
            start = end


def _routes(outgoing: Outgoing) -> list[Route]:
    if not outgoing.routes:
        return [Route()] * len(outgoing.values)
    nothing: list[str | None] = [None] * len(outgoing.values)
    parts = (outgoing.route(name) or nothing for name in ("path", "method", "headers"))
    return [Route(*route) for route in zip(*parts, strict=True)]
