"""Redis as both of its sinks reach it."""

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, SecretStr

from refill.connectors.kit.addresses import ANYWHERE, NetworkPolicy
from refill.connectors.kit.contract import Options
from refill.connectors.kit.message_sink import MessageSink
from refill.connectors.kit.tls import Authority
from refill.domain.errors import SinkRefused, SinkUnavailable

if TYPE_CHECKING:
    import redis

# commands on their way at once: enough to forget the round trip, little enough to hold
PIPELINE_COMMANDS = 1000
TIMEOUT_SECONDS = 15
# a full disk, replicas that are away: they come back, and the client has no classes for them
_PASSING = ("MISCONF", "NOREPLICAS")
# a pipeline's errors begin with the command, which has the row in it
_COMMAND = re.compile(r"^Command # \d+ .*? of pipeline caused error: ", re.DOTALL)


class RedisOptions(Options):
    live: ClassVar[frozenset[str]] = frozenset(
        {"host", "port", "tls", "ca_certificate", "username", "password"}
    )
    secret_address: ClassVar[frozenset[str] | None] = frozenset(
        {"host", "port", "tls", "ca_certificate"}
    )

    host: str = Field(description="name or address of the server", min_length=1)
    port: int = Field(6379, ge=1, le=65535, description="port of the server")
    database: int = Field(0, ge=0, description="number of the database")
    tls: bool = Field(False, description="encrypt the connection, and check the server's name")
    ca_certificate: Authority = Field(
        None, description="PEM of the authority that signed the server's certificate"
    )
    username: str | None = Field(None, description="user")
    password: SecretStr | None = Field(None, description="password")


class RedisSink(MessageSink):
    """Holds the connection; its subclasses say what a message becomes."""

    def __init__(self, options: RedisOptions, network: NetworkPolicy = ANYWHERE) -> None:
        self._server = options
        self._network = network
        self._client: redis.Redis | None = None

    def test(self) -> None:
        with self.errors_explained():
            self.client.ping()

    @property
    def client(self) -> "redis.Redis":
        if self._client is None:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry

            from refill.connectors.redis.pinned import PinnedConnection, PinnedTlsConnection

            server = self._server
            tls: dict[str, Any] = {"connection_class": PinnedConnection}
            if server.tls:
                tls = {
                    "connection_class": PinnedTlsConnection,
                    "ssl_ca_data": server.ca_certificate,
                    "ssl_check_hostname": True,
                }
            pool = redis.ConnectionPool(
                host=server.host,
                port=server.port,
                network=self._network,
                db=server.database,
                username=server.username,
                password=server.password.get_secret_value() if server.password else None,
                socket_timeout=TIMEOUT_SECONDS,
                socket_connect_timeout=5,
                # whether it is worth another try is decided above us
                retry=Retry(NoBackoff(), 0),
                **tls,
            )
            self._client = redis.Redis.from_pool(pool)
        return self._client

    def run(self, commands: list[tuple[Any, ...]]) -> None:
        """Sends all, then reads all answers; the first that is an error is raised."""
        with self.errors_explained():
            for start in range(0, len(commands), PIPELINE_COMMANDS):
                pipeline: Any = self.client.pipeline(transaction=False)
                for command in commands[start : start + PIPELINE_COMMANDS]:
                    pipeline.execute_command(*command)
                pipeline.execute()

    @contextlib.contextmanager
    def errors_explained(self) -> Iterator[None]:
        import redis.exceptions as theirs

        place = f"Redis at {self._server.host}:{self._server.port}"
        try:
            yield
        except (theirs.AuthenticationError, theirs.NoPermissionError) as exc:
            raise SinkRefused(f"{place} refused us: {exc}") from exc
        except (
            theirs.BusyLoadingError,
            theirs.ConnectionError,
            theirs.TimeoutError,
            theirs.TryAgainError,
            theirs.ReadOnlyError,
            theirs.OutOfMemoryError,
            theirs.ClusterDownError,
        ) as exc:
            raise SinkUnavailable(f"{place} could not be used: {exc}") from exc
        except theirs.ResponseError as exc:
            said = _COMMAND.sub("", str(exc))
            if said.startswith(_PASSING):
                raise SinkUnavailable(f"{place} could not be used: {said}") from exc
            raise SinkRefused(f"{place} refused a command: {said}") from exc

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
