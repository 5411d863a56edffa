"""RabbitMQ: persistent messages, each confirmed by the broker."""

from typing import ClassVar

from pydantic import Field, SecretStr

from refill.connectors.kit.contract import Connector, Context, Guarantee, Options, Sink
from refill.connectors.kit.tls import Authority


class RabbitOptions(Options):
    live: ClassVar[frozenset[str]] = frozenset(
        {"host", "port", "tls", "ca_certificate", "username", "password"}
    )
    secret_address: ClassVar[frozenset[str] | None] = frozenset(
        {"host", "port", "tls", "ca_certificate"}
    )

    host: str = Field(description="name or address of the server", min_length=1)
    port: int = Field(5672, ge=1, le=65535, description="port of the server")
    exchange: str = Field(
        description="exchange that the messages go to; it must exist", max_length=255
    )
    virtual_host: str = Field("/", description="virtual host", min_length=1)
    headers: dict[str, str] = Field(
        default_factory=dict, description="headers that go with every message"
    )
    tls: bool = Field(False, description="encrypt the connection, and check the server's name")
    ca_certificate: Authority = Field(
        None, description="PEM of the authority that signed the server's certificate"
    )
    username: str = Field("guest", description="user")
    password: SecretStr = Field(SecretStr("guest"), description="password")


def _open_sink(options: RabbitOptions, context: Context) -> Sink:
    from refill.connectors.rabbitmq.sink import RabbitSink

    return RabbitSink(options, context.network)


CONNECTOR = Connector(
    type="rabbitmq",
    title="RabbitMQ",
    options_model=RabbitOptions,
    is_sink=True,
    routes=("exchange", "routing_key", "headers"),
    guarantee=Guarantee.AT_LEAST_ONCE,
    guarantee_note="every message carries its idempotency key as message_id",
    extra="rabbitmq",
    driver="pika",
    open_sink=_open_sink,
)
