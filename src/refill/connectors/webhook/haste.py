"""A time for a whole request. httpx knows one for each read only: a receiver that answers a byte
every ten seconds would keep it for days."""

import ssl
import threading
import time
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx


class Haste:
    """Each thread makes one request at a time: its deadline holds for every read and write."""

    def __init__(self) -> None:
        self._local = threading.local()

    def begin(self, seconds: float) -> None:
        self._local.deadline = time.monotonic() + seconds

    def left(self, timeout: float | None) -> float:
        left: float = self._local.deadline - time.monotonic()
        return max(0.001, left if timeout is None else min(timeout, left))

    def transport(self, connections: int) -> httpx.HTTPTransport:
        transport = httpx.HTTPTransport(trust_env=False)
        # the one thing of the pool that httpx gives no parameter for
        transport._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(trust_env=False),
            max_connections=connections,
            network_backend=_Backend(self),
        )
        return transport


class _Backend(httpcore.NetworkBackend):
    def __init__(self, haste: Haste) -> None:
        self._haste = haste
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        left = self._haste.left(timeout)
        found = self._plain.connect_tcp(host, port, left, local_address, socket_options)
        return _Stream(found, self._haste)


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, haste: Haste) -> None:
        self._stream = stream
        self._haste = haste

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._haste.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._haste.left(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = self._haste.left(timeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left), self._haste)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
