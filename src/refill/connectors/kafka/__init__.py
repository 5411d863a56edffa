"""Kafka: a transaction per slice, so that a read-committed consumer sees every row once."""

from typing import ClassVar, Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from refill.connectors.kit.contract import Connector, Context, Guarantee, Options, Sink
from refill.connectors.kit.tls import Authority
from refill.domain.pipeline import Kind


class KafkaOptions(Options):
    live: ClassVar[frozenset[str]] = frozenset(
        {
            *("hosts", "tls", "ca_certificate", "username", "password", "sasl_mechanism"),
            *("aws_region", "aws_access_key_id", "aws_secret_access_key"),
        }
    )
    secret_address: ClassVar[frozenset[str] | None] = frozenset(
        {"hosts", "tls", "ca_certificate", "sasl_mechanism"}
    )

    hosts: str = Field(description="brokers to begin with, host:port, separated by commas")
    topic: str = Field(
        description="topic that the messages go to; it must exist",
        min_length=1,
        max_length=249,
        pattern=r"^[A-Za-z0-9._-]+$",
    )
    tls: bool = Field(False, description="encrypt the connection, and check the broker's name")
    ca_certificate: Authority = Field(
        None, description="PEM of the authority that signed the brokers' certificates"
    )
    username: str | None = Field(None, description="user for SASL")
    password: SecretStr | None = Field(None, description="password for SASL")
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "AWS-MSK-IAM"] | None = (
        Field(
            None,
            description="PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, AWS-MSK-IAM; with a username: PLAIN",
        )
    )
    aws_region: str | None = Field(
        None, description="AWS-MSK-IAM: region of the cluster", pattern=r"^[a-z0-9-]{1,40}$"
    )
    aws_access_key_id: str | None = Field(None, description="AWS-MSK-IAM: who signs")
    aws_secret_access_key: SecretStr | None = Field(None, description="AWS-MSK-IAM: its secret")
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = Field(
        "lz4", description="how batches are compressed; lz4 is cheaper than none"
    )

    @field_validator("sasl_mechanism", mode="before")
    @classmethod
    def as_brokers_write_it(cls, value: object) -> object:
        """`scram_sha_256` is as good as `SCRAM-SHA-256`."""
        return value.upper().replace("_", "-") if isinstance(value, str) else value

    @field_validator("hosts")
    @classmethod
    def are_hosts(cls, value: str) -> str:
        hosts = [host.strip() for host in value.split(",") if host.strip()]
        for host in hosts:
            name, _, port = host.rpartition(":")
            if not name or not port.isdigit() or not 0 < int(port) < 65536 or "/" in name:
                raise ValueError(f"{host!r} is not host:port")
        if not hosts:
            raise ValueError("names no host")
        return ",".join(hosts)

    @model_validator(mode="after")
    def credentials_are_whole(self) -> "KafkaOptions":
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password belong together")
        signed = (self.aws_region, self.aws_access_key_id, self.aws_secret_access_key)
        if self.sasl_mechanism == "AWS-MSK-IAM":
            if not all(signed) or not self.tls:
                raise ValueError(
                    "AWS-MSK-IAM needs aws_region, aws_access_key_id, aws_secret_access_key and tls"
                )
        elif any(signed):
            raise ValueError("aws_… fields belong to sasl_mechanism AWS-MSK-IAM")
        elif self.sasl_mechanism and not self.username:
            raise ValueError("sasl_mechanism needs a username and a password")
        return self

    @property
    def addresses(self) -> list[tuple[str, int]]:
        pairs = (host.rpartition(":") for host in self.hosts.split(","))
        return [(name.strip("[]"), int(port)) for name, _, port in pairs]


def _open_sink(options: KafkaOptions, context: Context) -> Sink:
    from refill.connectors.kafka.sink import KafkaSink

    return KafkaSink(options, context.network)


CONNECTOR = Connector(
    type="kafka",
    title="Kafka",
    options_model=KafkaOptions,
    is_sink=True,
    guarantee=Guarantee.EXACTLY_ONCE,
    guarantee_note=(
        "for consumers that read committed messages: a slice and its marker are one transaction"
    ),
    seals=frozenset({Kind.SINK}),
    routes=("topic", "key", "headers"),
    fading_markers=True,
    extra="kafka",
    driver="confluent_kafka",
    open_sink=_open_sink,
)
