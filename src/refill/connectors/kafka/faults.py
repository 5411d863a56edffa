"""What librdkafka's errors mean to us."""

from typing import Any

from confluent_kafka import KafkaError, KafkaException

from refill.domain.errors import RefillError, SinkRefused, SinkUnavailable, Superseded

FENCED = frozenset(
    {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}
)
NO_TOPIC = frozenset(
    {KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION}
)
TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})
REFUSED = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.ILLEGAL_SASL_STATE,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.POLICY_VIOLATION,
        KafkaError.INVALID_TRANSACTION_TIMEOUT,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError.INVALID_RECORD,
        KafkaError._INVALID_ARG,
    }
)


def error_of(exc: BaseException) -> Any:
    """The KafkaError inside, or None."""
    if isinstance(exc, KafkaException) and exc.args and isinstance(exc.args[0], KafkaError):
        return exc.args[0]
    return None


def translated(error: Any, topic: str, hosts: str) -> RefillError:
    """One of ours for one of theirs: worth another try unless we know better."""
    code = error.code()
    said = error.str()
    if code in FENCED:
        return Superseded("A newer attempt of this slice writes to Kafka; this one stopped.")
    if code in NO_TOPIC:
        return SinkRefused(
            f"Kafka at {hosts} has no topic {topic!r}; create it, then retry the backfill."
        )
    if code in TOO_LARGE:
        return SinkRefused(
            f"The topic {topic!r} refused messages as too large; raise its max.message.bytes."
        )
    if code in REFUSED:
        return SinkRefused(f"Kafka at {hosts} refused us: {said}")
    return SinkUnavailable(f"Kafka at {hosts} could not be used: {said}")
