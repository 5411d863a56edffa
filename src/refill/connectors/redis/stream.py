"""Redis streams: an entry per message, with its parts as fields."""

from pydantic import Field

from refill.connectors.kit.addresses import ANYWHERE, NetworkPolicy
from refill.connectors.kit.contract import Connector, Context, Guarantee, Job, Sink
from refill.connectors.kit.message_sink import Outgoing
from refill.connectors.redis.connection import RedisOptions, RedisSink


class RedisStreamOptions(RedisOptions):
    stream_key: str = Field(
        description="key of the stream; it is made with the first entry",
        min_length=1,
        max_length=255,
    )


class RedisStreamSink(RedisSink):
    def __init__(self, options: RedisStreamOptions, network: NetworkPolicy = ANYWHERE) -> None:
        super().__init__(options, network)
        self._stream = options.stream_key

    def send(self, job: Job, outgoing: Outgoing) -> None:
        entries = _bare_entries(outgoing) if outgoing.bare else _entries(outgoing)
        streams = outgoing.route("stream") or [None] * len(entries)
        self.run(
            [
                ("XADD", stream or self._stream, "*", *fields)
                for stream, fields in zip(streams, entries, strict=True)
            ]
        )


def _entries(outgoing: Outgoing) -> list[tuple[str, ...]]:
    """The fields of each entry, as Sequin names them."""
    records, metadata = outgoing.messages.parts()
    return [
        ("action", "read", "changes", "null", "metadata", about, "record", record)
        for record, about in zip(records.to_list(), metadata.to_list(), strict=True)
    ]


def _bare_entries(outgoing: Outgoing) -> list[tuple[str, ...]]:
    """A message that a transform made, and beside it what it is known by."""
    pairs = zip(outgoing.values.to_list(), outgoing.idempotency_keys.to_list(), strict=True)
    return [("message", value, "idempotency_key", known_as) for value, known_as in pairs]


def _open_sink(options: RedisStreamOptions, context: Context) -> Sink:
    return RedisStreamSink(options, context.network)


CONNECTOR = Connector(
    type="redis_stream",
    title="Redis stream",
    options_model=RedisStreamOptions,
    is_sink=True,
    guarantee=Guarantee.AT_LEAST_ONCE,
    guarantee_note=("every entry carries its idempotency key, by which a reader can drop repeats"),
    former_types=("redis",),
    extra="redis",
    driver="redis",
    routes=("stream",),
    open_sink=_open_sink,
)
