"""The typed fields of a PostgreSQL connection: nothing else of a URL is ever kept."""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    field_validator,
    model_validator,
)

from refill.connectors.kit.contract import Options
from refill.connectors.kit.tls import Authority
from refill.domain.table import split_name

# what libpq would read as something other than one name: a socket path, a list, a setting
_NOT_IN_A_HOSTNAME = frozenset("/\\,=@'\" \t\n\x00")
_Text = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[^\x00]*$")]
SslMode = Literal["disable", "require", "verify-ca", "verify-full"]


class PostgresOptions(Options):
    """How to reach a database, and where in it a sink (`table`) or a destination (`schema`)
    writes."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, serialize_by_alias=True
    )
    live: ClassVar[frozenset[str]] = frozenset(
        {
            *("hostname", "port", "database", "username", "password", "ssl", "sslmode"),
            *("ca_certificate", "client_certificate", "client_key", "weak_authentication"),
        }
    )

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
        description="Encrypt the connection. Not given: true, but for this machine itself.",
    )
    sslmode: SslMode | None = Field(
        default=None,
        title="TLS mode",
        description=(
            "disable, require (encrypted, nobody is checked), verify-ca or verify-full. Not given: "
            "as ssl says, and verify-full where there is a ca_certificate."
        ),
    )
    ca_certificate: Authority = Field(
        default=None,
        title="Authority",
        description="PEM of the authority that signed the server's certificate.",
    )
    client_certificate: Authority = Field(
        default=None, title="Client certificate", description="PEM of our own certificate."
    )
    client_key: SecretStr | None = Field(
        default=None, title="Client key", description="PEM of its private key."
    )
    weak_authentication: bool = Field(
        default=False,
        title="Weak authentication",
        description="Let the server ask for the password in clear (LDAP, PAM) or as MD5.",
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

    @property
    def mode(self) -> SslMode:
        """What libpq is told."""
        if self.sslmode is not None:
            return self.sslmode
        if not self.ssl:
            return "disable"
        return "verify-full" if self.ca_certificate else "require"

    def where_secrets_go(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in ("hostname", "port", "ca_certificate")},
            "mode": self.mode,
            "weak_authentication": self.weak_authentication,
        }

    def shown_masked(self) -> dict[str, Any]:
        return {**super().shown_masked(), "sslmode": self.mode}

    @model_validator(mode="before")
    @classmethod
    def _encrypts(cls, given: object) -> object:
        """What was stored says so itself; what is new is encrypted, but on this machine."""
        if not isinstance(given, Mapping):
            return given
        mode = given.get("sslmode")
        if mode is not None:
            if given.get("ssl") is True and mode == "disable":
                raise ValueError("ssl is true and sslmode disable: send both as you mean them")
            return {**given, "ssl": mode != "disable"}
        if given.get("ssl") is None:
            return {**given, "ssl": not _is_local(str(given.get("hostname")))}
        return given

    @model_validator(mode="after")
    def _certificates_are_whole(self) -> "PostgresOptions":
        if (self.client_certificate is None) != (self.client_key is None):
            raise ValueError("client_certificate and client_key belong together")
        if self.mode == "verify-ca" and self.ca_certificate is None:
            raise ValueError("sslmode verify-ca needs a ca_certificate")
        return self

    @field_validator("hostname")
    @classmethod
    def _one_host(cls, value: str) -> str:
        if _NOT_IN_A_HOSTNAME & set(value):
            raise ValueError("must be one host name or address")
        return value

    @field_validator("client_key")
    @classmethod
    def _is_key(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and "PRIVATE KEY-----" not in value.get_secret_value():
            raise ValueError("must be a private key in PEM form")
        return value

    @field_validator("password")
    @classmethod
    def _no_nul(cls, value: SecretStr) -> SecretStr:
        if "\x00" in value.get_secret_value():
            raise ValueError("must not contain a NUL")
        return value


def _is_local(hostname: str) -> bool:
    try:
        return ip_address(hostname).is_loopback
    except ValueError:
        return hostname.lower() in ("localhost", "localhost.localdomain")


def transfer_target(options: PostgresOptions, table: str) -> tuple[str, str]:
    """(schema, table) that a transfer writes."""
    return (options.schema_name, table) if options.schema_name else split_name(table)
