"""The typed fields of a PostgreSQL connection: nothing else of a URL is ever kept."""

from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field, SecretStr, StringConstraints, field_validator

from refill.connectors.kit.contract import Options
from refill.domain.table import split_name

# what libpq would read as something other than one name: a socket path, a list, a setting
_NOT_IN_A_HOSTNAME = frozenset("/\\,=@'\" \t\n\x00")
_Text = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[^\x00]*$")]


class PostgresOptions(Options):
    """How to reach a database, and where in it a sink (`table`) or a destination (`schema`)
    writes."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, serialize_by_alias=True
    )
    live: ClassVar[frozenset[str]] = frozenset(
        {"hostname", "port", "database", "username", "password", "ssl"}
    )
    address: ClassVar[frozenset[str] | None] = frozenset({"hostname", "port", "ssl"})

    hostname: _Text = Field(title="Host name", description="A name or an address, no socket path.")
    port: int = Field(default=5432, ge=1, le=65535, title="Port", description="Port of the server.")
    database: _Text = Field(title="Database", description="Its name on the server.")
    username: _Text = Field(title="User", description="Who connects.")
    password: SecretStr = Field(
        default=SecretStr(""), title="Password", description="The user's password."
    )
    ssl: bool = Field(
        default=False,
        title="Use TLS",
        description="Encrypt the connection; the server's certificate is not checked.",
    )
    table: _Text | None = Field(
        default=None,
        title="Table",
        description="Sinks: the table to write, as schema.name; the source's name if not given.",
    )
    schema_name: _Text | None = Field(
        default=None,
        alias="schema",
        title="Schema",
        description="Destinations: the schema that the transfers' tables are in.",
    )

    @field_validator("hostname")
    @classmethod
    def _one_host(cls, value: str) -> str:
        if _NOT_IN_A_HOSTNAME & set(value):
            raise ValueError("must be one host name or address")
        return value

    @field_validator("password")
    @classmethod
    def _no_nul(cls, value: SecretStr) -> SecretStr:
        if "\x00" in value.get_secret_value():
            raise ValueError("must not contain a NUL")
        return value


def transfer_target(options: PostgresOptions, table: str) -> tuple[str, str]:
    """(schema, table) that a transfer writes."""
    return (options.schema_name, table) if options.schema_name else split_name(table)
