"""Settings: the only reader of the environment."""

from ipaddress import ip_network
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Each is `REFILL_<NAME>` in the environment, and an option of the commands that use it."""

    model_config = SettingsConfigDict(env_prefix="REFILL_", frozen=True, extra="ignore")

    home: Path = Field(
        default=Path("~/.refill"), description="where the embedded store, keys and files live"
    )
    store_url: SecretStr | None = Field(
        default=None,
        description="PostgreSQL metadata store, postgresql://…; without it SQLite in the home",
    )
    host: str = Field(default="127.0.0.1", description="the address that the API listens on")
    port: int = Field(default=7376, ge=0, le=65535, description="the port that the API listens on")
    files_root: Path | None = Field(
        default=None,
        description="root of the files that sinks and destinations write; default <home>/files",
    )
    secret_key: SecretStr | None = Field(
        default=None,
        description="key that secrets are encrypted with; default a 0600 file in the home",
    )
    spark_master: str = Field(
        default="local[*]", description="Spark master: local[*], spark://…, yarn, k8s://…"
    )
    spark_remote: str | None = Field(
        default=None, description="Spark Connect address, sc://…; wins over the master"
    )
    spark_driver_memory: str = Field(default="1g", description="heap of the Spark driver's JVM")
    slots: int | None = Field(
        default=None, ge=1, description="packs run side by side; default one per core"
    )
    max_row_bytes: int = Field(
        default=67_108_864, ge=1024, description="largest row; larger ones are rejected"
    )
    python_memory: str | None = Field(
        default=None,
        description="memory of Spark's Python workers together: 8g; default 60% on one machine",
    )
    team_weights: str = Field(
        default="",
        description="shares of teams in the slots, 1 where none is given: 7=2,9=0.5",
    )
    lease_seconds: float = Field(
        default=30.0, gt=0, description="how long a claim lasts without a heartbeat"
    )
    max_failures: int = Field(
        default=8, ge=1, description="failures of a slice before it is given up"
    )
    stall_seconds: float = Field(
        default=300.0,
        gt=0,
        description="how long a plan, a slice or a last step may go on without progress",
    )
    rate_limit_per_hour: int = Field(
        default=10_000, ge=0, le=10_000, description="requests per key and hour; 0: no limit"
    )
    wrong_keys_per_hour: int = Field(
        default=1_000, ge=0, description="wrong keys per address and hour; 0: no limit"
    )
    body_seconds: float = Field(
        default=30.0, gt=0, description="how long a request's body may take to arrive"
    )
    max_range_days: int = Field(
        default=3660, ge=1, description="longest range of dates of one backfill"
    )
    body_limit_bytes: int = Field(default=1_048_576, ge=1024, description="largest request body")
    probe_seconds: float = Field(
        default=10.0,
        gt=0,
        description="how long a request waits for a database or destination that it asks",
    )
    probes_per_team: int = Field(
        default=4, ge=1, description="systems of one team that are asked at once"
    )
    retention_days: int = Field(
        default=90, ge=1, description="how long slices of ended backfills are kept"
    )
    allow_private_hosts: bool = Field(
        default=False, description="let webhooks reach loopback and private addresses"
    )
    smtp_url: SecretStr | None = Field(
        default=None, description="mail server, smtp://user:password@host:587 or smtps://…"
    )
    mail_from: str = Field(
        default="refill@localhost", description="sender of the mails about backfills"
    )
    stalled_minutes: float = Field(
        default=30.0, gt=0, description="a backfill that does not move for so long is reported"
    )
    allowed_networks: str = Field(
        default="",
        description="networks that may be reached, 10.0.0.0/8,…; without it all but refused ones",
    )
    refused_networks: str = Field(
        default="", description="networks that no source, sink or webhook may reach"
    )
    grace_seconds: float = Field(
        default=30.0, ge=0, description="how long a stop waits for running slices"
    )
    log_format: Literal["json", "text"] = Field(
        default="json", description="form of the log lines: json or text"
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = Field(
        default="INFO", description="lowest level that is logged: DEBUG, INFO, WARNING or ERROR"
    )

    @field_validator("log_level", mode="before")
    @classmethod
    def _in_capitals(cls, level: object) -> object:
        return level.upper() if isinstance(level, str) else level

    @field_validator("team_weights")
    @classmethod
    def _are_weights(cls, text: str) -> str:
        read_weights(text)
        return text

    @property
    def weights(self) -> dict[int, float]:
        return read_weights(self.team_weights)

    @field_validator("allowed_networks", "refused_networks")
    @classmethod
    def _are_networks(cls, networks: str) -> str:
        found = [part.strip() for part in networks.split(",") if part.strip()]
        for network in found:
            ip_network(network)  # says itself what is wrong with it
        return ",".join(found)

    @property
    def home_path(self) -> Path:
        return self.home.expanduser().absolute()

    @property
    def files_path(self) -> Path:
        return (self.files_root or self.home_path / "files").expanduser().absolute()


def read_weights(text: str) -> dict[int, float]:
    """`7=2,9=0.5`: team and weight."""
    weights: dict[int, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        team, _, weight = part.partition("=")
        try:
            weights[int(team)] = float(weight)
        except ValueError:
            weights[0] = 0.0
        if not all(0 < each < 1e6 for each in weights.values()):
            raise ValueError(f"{part!r} is no team=weight with a weight above 0")
    return weights


class ClientSettings(BaseSettings):
    """How the commands that speak over HTTP reach a server. `REFILL_<NAME>` too."""

    model_config = SettingsConfigDict(env_prefix="REFILL_", frozen=True, extra="ignore")

    url: str = Field(
        default="http://127.0.0.1:7376", description="the server that the commands speak to"
    )
    api_key: SecretStr | None = Field(default=None, description="the key that the commands show it")
    team: int = Field(
        default=1, ge=1, description="the team whose transfers and backfills are meant"
    )
