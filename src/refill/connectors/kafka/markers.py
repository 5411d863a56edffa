"""The marker of a slice: a consumer group's offset, committed in the slice's own transaction.

It is there if and only if the slice's messages are. Brokers forget the offsets of groups without
members after a while (`offsets.retention.minutes`, seven days unless changed), long after any
retry; the last step of a backfill deletes them, and leaves one that says that it is over.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from refill.connectors.kafka.cluster import Cluster
from refill.connectors.kafka.faults import error_of
from refill.connectors.kit.contract import Job, Written
from refill.domain.slice import Reject, Ticket

if TYPE_CHECKING:
    from confluent_kafka import Producer

# brokers take 4096 bytes of text with an offset (`offset.metadata.max.bytes`)
TEXT_LIMIT = 3500
FIND_SECONDS = 30.0
SEND_SECONDS = 30.0
_DELETED_AT_ONCE = 500
_LOOKS = 2


@dataclass(frozen=True, slots=True)
class Marker:
    """What the attempt that committed said of itself."""

    attempt: int
    written: Written


def name_of(job: Job, index: int) -> str:
    """The slice's transactional id, and the group of its marker."""
    return f"{_prefix(job)}{index}"


def _seal_of(job: Job) -> str:
    return f"refill-sealed-{job.backfill_uid}"


def _prefix(job: Job) -> str:
    return f"refill-{job.backfill_uid}-"


def send(producer: "Producer", job: Job, ticket: Ticket, topic: str, written: Written) -> None:
    """Adds the marker to the open transaction."""
    text = _text(ticket.attempt, written)
    offsets = [TopicPartition(topic, 0, written.rows_delivered, text)]
    group = _group(name_of(job, ticket.index))
    producer.send_offsets_to_transaction(offsets, group, SEND_SECONDS)


def touch(producer: "Producer", topic: str) -> None:
    """Raises why a transaction failed."""
    offsets = [TopicPartition(topic, 0, 0)]
    producer.send_offsets_to_transaction(offsets, _group("refill-aborted"), SEND_SECONDS)


def _group(name: str) -> Any:
    # needs no broker and joins nothing: it only lends its name
    consumer = Consumer({"group.id": name, "log_level": 0})
    try:
        return consumer.consumer_group_metadata()
    finally:
        consumer.close()


def find(cluster: Cluster, job: Job, index: int, topic: str) -> Marker | None:
    """Read at stable offsets, after the older attempts were fenced: nothing is still on its way."""
    text = _committed(cluster, name_of(job, index), topic)
    return _parse(text) if text else None


def is_sealed(cluster: Cluster, job: Job, topic: str) -> bool:
    """Whether the backfill is over, its markers deleted or about to be."""
    return _committed(cluster, _seal_of(job), topic) is not None


def seal(cluster: Cluster, job: Job, topic: str) -> None:
    """What stays when the markers go, until the broker forgets it: an attempt that slept through
    the end of its backfill must not take the lack of a marker for work to do."""
    consumer = _consumer(cluster, _seal_of(job))

    def commit() -> None:
        offsets = [TopicPartition(topic, 0, 1, "sealed")]
        (said,) = consumer.commit(offsets=offsets, asynchronous=False)
        if said.error is not None:
            raise KafkaException(said.error)

    try:
        cluster.patiently(commit, FIND_SECONDS)
    finally:
        consumer.close()


def _committed(cluster: Cluster, group: str, topic: str) -> str | None:
    """The text beside the group's offset."""
    consumer = _consumer(cluster, group)

    def look() -> TopicPartition:
        (offset,) = consumer.committed([TopicPartition(topic, 0)], FIND_SECONDS)
        if offset.error is not None:
            raise KafkaException(offset.error)
        return offset

    try:
        offset = cluster.patiently(look, FIND_SECONDS)
    finally:
        consumer.close()
    return offset.metadata or None if offset.offset >= 0 else None


def _consumer(cluster: Cluster, group: str) -> Consumer:
    # not the admin client: that one crashes in librdkafka when the group's coordinator has just
    # moved. Read-committed is what makes it wait for stable offsets
    return Consumer(
        cluster.settings(
            **{
                "group.id": group,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
    )


def delete_all(cluster: Cluster, job: Job) -> None:
    """Every marker of a backfill. Looks twice: a list may be a moment old."""
    for _ in range(_LOOKS):
        names = _listed(cluster, job)
        for start in range(0, len(names), _DELETED_AT_ONCE):
            part = names[start : start + _DELETED_AT_ONCE]
            for future in cluster.admin.delete_consumer_groups(part).values():
                _wait_deleted(cluster, future)


def _listed(cluster: Cluster, job: Job) -> list[str]:
    listed = cluster.ask(lambda: cluster.admin.list_consumer_groups())
    prefix = _prefix(job)
    return [group.group_id for group in listed.valid if group.group_id.startswith(prefix)]


def _wait_deleted(cluster: Cluster, future: Any) -> None:
    try:
        future.result(30)
    except KafkaException as exc:
        error = error_of(exc)
        if error is None or error.code() != KafkaError.GROUP_ID_NOT_FOUND:
            raise cluster.explained(exc) from exc


def _text(attempt: int, written: Written) -> str:
    """The counts, and as many of the rejected rows as there is room for."""
    content: dict[str, Any] = {
        "attempt": attempt,
        "rows": written.rows_delivered,
        "bytes": written.bytes_written,
        "rejected": written.rows_rejected,
        "rejects": [],
    }
    for reject in written.rejects:
        content["rejects"].append([list(reject.key), reject.reason, reject.detail])
        if len(json.dumps(content)) > TEXT_LIMIT:
            content["rejects"].pop()
            break
    return json.dumps(content)


def _parse(text: str) -> Marker:
    content = json.loads(text)
    rejects = tuple(
        Reject(key=tuple(key), reason=reason, detail=detail)
        for key, reason, detail in content["rejects"]
    )
    written = Written(
        rows_delivered=content["rows"],
        bytes_written=content["bytes"],
        rows_rejected=content["rejected"],
        rejects=rejects,
        delivered_before=True,
    )
    return Marker(content["attempt"], written)
