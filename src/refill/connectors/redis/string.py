"""Redis strings: the message of a row under the row's own key, so that a repeat changes nothing."""

from typing import Literal

from pydantic import Field

from refill.connectors.kit.contract import Connector, Context, Guarantee, Job, Sink
from refill.connectors.kit.message_sink import Outgoing, Tally
from refill.connectors.redis.connection import RedisOptions, RedisSink
from refill.domain.errors import SinkRefused


class RedisStringOptions(RedisOptions):
    expire_ms: int | None = Field(
        None, ge=1, description="how long a key lives, in milliseconds; without it for ever"
    )
    mode: Literal["static", "dynamic"] = Field(
        "static", description="kept and given back; keys are named by table and primary key"
    )


class RedisStringSink(RedisSink):
    def __init__(self, options: RedisStringOptions) -> None:
        super().__init__(options)
        self._expiry = () if options.expire_ms is None else ("PX", options.expire_ms)

    def begin(self, job: Job) -> Tally:
        table = job.sink_spec.read.table
        if not table.key:
            raise SinkRefused(
                f"{table.full_name} has no primary key, which Redis strings are named by; choose "
                "another sink, or add a key to the table."
            )
        return Tally()

    def send(self, job: Job, outgoing: Outgoing) -> None:
        if outgoing.keys is None:
            raise SinkRefused("The transform drops the primary key, which Redis strings go by.")
        table = job.sink_spec.read.table
        names = (f"sequin:{table.name}:" + outgoing.keys).to_list()
        values = outgoing.value_bytes()
        self.run(
            [("SET", name, value, *self._expiry) for name, value in zip(names, values, strict=True)]
        )


def _open_sink(options: RedisStringOptions, context: Context) -> Sink:
    return RedisStringSink(options)


CONNECTOR = Connector(
    type="redis_string",
    title="Redis string",
    options_model=RedisStringOptions,
    is_sink=True,
    guarantee=Guarantee.KEYED,
    guarantee_note="a row is one key, sequin:<table>:<primary key>; writing it again replaces it",
    extra="redis",
    driver="redis",
    open_sink=_open_sink,
)
