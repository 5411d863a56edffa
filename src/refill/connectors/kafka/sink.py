"""Delivers slices to Kafka, each in a transaction of its own."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer

from refill.connectors.kafka import KafkaOptions, markers
from refill.connectors.kafka.cluster import Cluster
from refill.connectors.kafka.faults import error_of
from refill.connectors.kit.addresses import ANYWHERE, NetworkPolicy
from refill.connectors.kit.contract import Job, Sink, Written
from refill.connectors.kit.envelope import PORTION_BYTES, PORTION_ROWS, Envelope
from refill.connectors.kit.message_sink import Outgoing, Tally
from refill.domain.errors import SinkUnavailable, Superseded, TooManyRejects
from refill.domain.slice import Ticket

if TYPE_CHECKING:
    import pyarrow as pa

# an open transaction holds back every read-committed reader of the topic: a slice takes about
# five seconds, and one that was abandoned is given up by the broker after this
TRANSACTION_SECONDS = 60
# a throttled slice is slow because somebody asked for it; brokers allow 15 minutes
THROTTLED_SECONDS = 600
INIT_SECONDS = 30.0
COMMIT_SECONDS = 30.0
ABORT_SECONDS = 5.0
QUEUED_ROWS = 3 * PORTION_ROWS
IDEMPOTENCY_HEADER = "idempotency-key"  # where the message itself does not say it
OVERHEAD_BYTES = 100  # of a record and its batch, with room to spare


class KafkaSink(Sink):
    def __init__(self, options: KafkaOptions, network: NetworkPolicy = ANYWHERE) -> None:
        self._options = options
        self._cluster = Cluster(options, network)

    def test(self) -> None:
        self._cluster.find_topic()

    def prepare(self, job: Job, schema: "pa.Schema") -> None:
        """A topic that is not there is told before the first slice is read."""
        self._cluster.find_topic()

    def write(
        self, job: Job, ticket: Ticket, schema: "pa.Schema", batches: Iterator["pa.RecordBatch"]
    ) -> Written:
        self._cluster.forget()
        limit = self._cluster.message_limit()
        seconds = THROTTLED_SECONDS if job.spec.max_rows_per_second else TRANSACTION_SECONDS
        producer = self._producer(markers.name_of(job, ticket.index), limit, seconds)
        try:
            with self._cluster.errors_explained():
                # the order matters: fence the older attempts, then look for what they committed,
                # then begin; looked for first, a marker could appear in between
                producer.init_transactions(INIT_SECONDS)
                marker = markers.find(self._cluster, job, ticket.index, self._options.topic)
                if marker is not None:
                    return _standing(marker, ticket)
                if markers.is_sealed(self._cluster, job, self._options.topic):
                    raise Superseded("The backfill of this slice is over.")
                producer.begin_transaction()
                slice_ = _OpenSlice(producer, self._cluster, self._options.topic, limit, seconds)
                return self._deliver(slice_, job, ticket, schema, batches)
        finally:
            # whatever is left open here is aborted by the next attempt, or by the broker
            _drop(producer)

    def delivered(self, job: Job, tickets: Sequence[Ticket]) -> list[Written | None]:
        self._cluster.forget()
        self._cluster.message_limit()  # a cluster that refuses us says so here, and at once
        found = [
            markers.find(self._cluster, job, ticket.index, self._options.topic)
            for ticket in tickets
        ]
        return [marker.written if marker else None for marker in found]

    def seal(self, job: Job) -> None:
        markers.seal(self._cluster, job, self._options.topic)
        markers.delete_all(self._cluster, job)

    def close(self) -> None:
        self._cluster.close()

    def _deliver(
        self,
        slice_: "_OpenSlice",
        job: Job,
        ticket: Ticket,
        schema: "pa.Schema",
        batches: Iterator["pa.RecordBatch"],
    ) -> Written:
        envelope = Envelope(job, ticket, schema)
        try:
            for batch in batches:
                for portion in envelope.portions(batch):
                    slice_.send(envelope, portion)
            written = slice_.tally.written()
            if written.rows_rejected > job.spec.max_rejects:
                raise self._too_many(written, job.spec.max_rejects)
            markers.send(slice_.producer, job, ticket, self._options.topic, written)
            slice_.commit()
        except BaseException:
            with suppress(KafkaException):
                slice_.producer.purge()
                slice_.producer.abort_transaction(ABORT_SECONDS)
            raise
        return written

    def _too_many(self, written: Written, allowed: int) -> TooManyRejects:
        keys = ", ".join(":".join(map(str, reject.key)) for reject in written.rejects[:3])
        return TooManyRejects(
            f"{written.rows_rejected} messages are larger than the topic {self._options.topic!r} "
            f"takes (keys {keys}{', …' if written.rows_rejected > 3 else ''}) and {allowed} rows "
            "may be rejected; raise its max.message.bytes, or the sink's max_rejects and start a "
            "new backfill.",
            written.rejects,
            written.rows_rejected,
        )

    def _producer(self, name: str, limit: int, seconds: int) -> Producer:
        return Producer(
            self._cluster.settings(
                **{
                    "transactional.id": name,
                    "transaction.timeout.ms": seconds * 1000,
                    "compression.type": self._options.compression,
                    # as other clients choose partitions, so that equal keys meet
                    "partitioner": "murmur2_random",
                    "message.max.bytes": max(1000, min(limit, 1_000_000_000)),
                    "batch.size": max(1, min(limit, 1_000_000)),
                    "batch.num.messages": 100_000,
                    "linger.ms": 20,
                    "queue.buffering.max.messages": 2 * QUEUED_ROWS,
                    "queue.buffering.max.kbytes": 6 * PORTION_BYTES // 1024,
                }
            )
        )


class _OpenSlice:
    """The transaction of one slice, from begin to commit."""

    def __init__(
        self, producer: Producer, cluster: Cluster, topic: str, limit: int, seconds: int
    ) -> None:
        self.producer = producer
        self._cluster = cluster
        self._topic = topic
        self._found = {topic}
        self._deadline = time.monotonic() + seconds * 0.8
        self.tally = Tally(limit - OVERHEAD_BYTES, f"the topic {topic!r}")

    def send(self, envelope: Envelope, portion: "pa.RecordBatch") -> None:
        """Encodes and hands over; returns when librdkafka has room for the next."""
        self._check_time()
        outgoing = self.tally.sift(envelope, portion)
        keys, values = outgoing.key_bytes(), outgoing.value_bytes()
        handed: list[dict[str, Any]]
        if keys is None:
            handed = [{"value": value} for value in values]
        else:
            pairs = zip(keys, values, strict=True)
            handed = [{"key": key, "value": value} for key, value in pairs]
        if outgoing.bare or "headers" in outgoing.routes:
            self._hand_over_singly(outgoing, handed)
            return
        for topic, messages in self._by_topic(outgoing, handed).items():
            self._hand_over(topic, messages)

    def _by_topic(
        self, outgoing: Outgoing, handed: list[dict[str, Any]]
    ) -> dict[str, list[dict[str, Any]]]:
        """In their order: one transaction has them all, whichever topics they go to."""
        topics = outgoing.route("topic")
        if topics is None:
            return {self._topic: handed}
        found: dict[str, list[dict[str, Any]]] = {}
        for topic, message in zip(topics, handed, strict=True):
            found.setdefault(self._existing(topic), []).append(message)
        return found

    def _existing(self, topic: str | None) -> str:
        """A topic that is not there is told, and not waited for until the transaction is over."""
        if topic is None:
            return self._topic
        if topic not in self._found:
            self._cluster.find_topic(topic)
            self._found.add(topic)
        return topic

    def _hand_over_singly(self, outgoing: Outgoing, handed: list[dict[str, Any]]) -> None:
        """The client takes headers with single messages only."""
        known_as = outgoing.idempotency_keys.to_list()
        topics = outgoing.route("topic") or [None] * len(handed)
        headers = outgoing.headers() or [{}] * len(handed)
        for message, key, topic, more in zip(handed, known_as, topics, headers, strict=True):
            sent = [(name, value.encode()) for name, value in more.items()]
            while True:
                try:
                    self.producer.produce(
                        self._existing(topic),
                        headers=[(IDEMPOTENCY_HEADER, key.encode()), *sent],
                        **message,
                    )
                    break
                except BufferError:
                    self._wait()
                except KafkaException as exc:
                    self._fail(error_of(exc))
        self.producer.poll(0)

    def _hand_over(self, topic: str, handed: list[dict[str, Any]]) -> None:
        while handed:
            while len(self.producer) > QUEUED_ROWS:
                self._wait()
            taken = self.producer.produce_batch(topic, handed)
            if taken == len(handed):
                break
            handed = [message for message in handed if "_error" in message]
            for message in handed:
                error = message.pop("_error")
                if error.code() != KafkaError._QUEUE_FULL:
                    self._fail(error)
            self._wait()
        self.producer.poll(0)

    def _wait(self) -> None:
        self._check_time()
        self.producer.poll(0.01)

    def _check_time(self) -> None:
        """Stops before the broker does: it would fence us, as if a newer attempt were there."""
        if time.monotonic() > self._deadline:
            raise SinkUnavailable(
                "The slice took longer than its Kafka transaction may stay open; it is tried again."
            )

    def _fail(self, error: Any) -> None:
        """A failed transaction tells `produce` only that it failed, and why to every call of its
        own; the one chosen here does no harm, since an abort follows."""
        if error.code() == KafkaError._STATE:
            markers.touch(self.producer, self._topic)
        raise KafkaException(error)

    def commit(self) -> None:
        """Commits, again where the cluster only needs a moment. A commit whose answer is lost may
        have happened: the next attempt finds its marker, or aborts it."""
        deadline = time.monotonic() + COMMIT_SECONDS
        self._check_time()
        while True:
            try:
                self.producer.commit_transaction(COMMIT_SECONDS)
                return
            except KafkaException as exc:
                error = error_of(exc)
                if error is None or not error.retriable() or time.monotonic() > deadline:
                    raise


def _standing(marker: markers.Marker, ticket: Ticket) -> Written:
    if marker.attempt > ticket.attempt:
        raise Superseded("A newer attempt of this slice was delivered to Kafka already.")
    return marker.written


def _drop(producer: Producer) -> None:
    """Frees the client. One that was fenced cannot even be closed without saying so again."""
    with suppress(KafkaException):
        producer.purge()
        producer.close()
