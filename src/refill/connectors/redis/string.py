"""Redis strings: the message of a row under the row's own key, so that a repeat changes nothing."""

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from refill.connectors.kit.addresses import ANYWHERE, NetworkPolicy
from refill.connectors.kit.contract import Connector, Context, Guarantee, Job, Sink
from refill.connectors.kit.message_sink import Outgoing, Tally
from refill.connectors.redis.connection import RedisOptions, RedisSink
from refill.domain.errors import SinkRefused
from refill.domain.table import Family, Table

if TYPE_CHECKING:
    import polars as pl


_SELF_DELIMITING = frozenset(
    {Family.BOOLEAN, Family.INTEGER, Family.DECIMAL, Family.FLOAT, Family.UUID}
    | {Family.DATE, Family.TIMESTAMP, Family.INSTANT}
)


class RedisStringOptions(RedisOptions):
    expire_ms: int | None = Field(
        None, ge=1, description="how long a key lives, in milliseconds; without it for ever"
    )
    mode: Literal["static", "dynamic"] = Field(
        "static", description="kept and given back; keys are named by table and primary key"
    )


class RedisStringSink(RedisSink):
    def __init__(self, options: RedisStringOptions, network: NetworkPolicy = ANYWHERE) -> None:
        super().__init__(options, network)
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
        parts = outgoing.messages.key_parts
        if not parts:
            raise SinkRefused("The transform drops the primary key, which Redis strings go by.")
        table = job.sink_spec.read.table
        names = (f"sequin:{table.name}:" + dashed(parts, table)).to_list()
        if (chosen := outgoing.route("key")) is not None:
            names = [key or name for key, name in zip(chosen, names, strict=True)]
        values = outgoing.value_bytes()
        self.run(
            [("SET", name, value, *self._expiry) for name, value in zip(names, values, strict=True)]
        )


def dashed(parts: "list[pl.Series]", table: Table) -> "pl.Series":
    """The parts of a key joined by `-`. Numbers, dates and uuids say themselves where they end, so
    that only in other parts a `-` has to be told from those between: by a backslash before it."""
    import polars as pl

    if len(parts) == 1:
        return parts[0]
    columns = []
    for index, (name, texts) in enumerate(zip(table.key, parts, strict=True)):
        column = table.column(name)
        if column is None or column.family not in _SELF_DELIMITING:
            texts = texts.str.replace_many(["\\", "-"], ["\\\\", "\\-"])
        columns.append(texts.alias(str(index)))
    return pl.DataFrame(columns).select(pl.concat_str(pl.all(), separator="-")).to_series()


def _open_sink(options: RedisStringOptions, context: Context) -> Sink:
    return RedisStringSink(options, context.network)


CONNECTOR = Connector(
    type="redis_string",
    title="Redis string",
    options_model=RedisStringOptions,
    is_sink=True,
    guarantee=Guarantee.KEYED,
    guarantee_note="a row is one key, sequin:<table>:<primary key>; writing it again replaces it",
    extra="redis",
    driver="redis",
    routes=("key",),
    open_sink=_open_sink,
)
