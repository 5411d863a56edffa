"""Connections of redis-py that go where the network policy lets them, and nowhere else."""

from typing import Any

from redis.connection import Connection, SSLConnection

from refill.connectors.kit.addresses import NetworkPolicy


class PinnedConnection(Connection):
    """Resolves the name by the policy at every connect; the name itself stays what a certificate
    is checked against."""

    def __init__(self, *args: Any, network: NetworkPolicy, **settings: Any) -> None:
        self._network = network
        super().__init__(*args, **settings)  # type: ignore[no-untyped-call]

    def _connect(self) -> Any:
        name = self.host
        self.host = self._network.reach(name, int(self.port))
        try:
            return super()._connect()  # type: ignore[no-untyped-call]
        finally:
            self.host = name


class PinnedTlsConnection(SSLConnection, PinnedConnection):
    """TLS comes first in line, so that what it wraps is a pinned connection."""
