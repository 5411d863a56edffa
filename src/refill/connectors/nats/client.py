"""nats-py's client, held to TLS where TLS was asked for.

The library encrypts when the server says that it must, and sends the password in clear when it
says nothing. What it overrides here is private to the library: tests/security holds it to that.
"""

import contextlib
from typing import Any

from nats.aio.client import Client
from nats.errors import Error


class GuardedClient(Client):  # type: ignore[misc]
    def __init__(self, *, needs_tls: bool) -> None:
        super().__init__()
        self._needs_tls = needs_tls

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        # where others of its cluster are is not for the server to tell us
        info.pop("connect_urls", None)
        if self._needs_tls and info.get("tls_available"):
            info["tls_required"] = True
        await super()._process_info(info, initial_connection)

    def _connect_command(self) -> bytes:
        """The first line that has a secret in it."""
        writer = getattr(self._transport, "_io_writer", None)
        encrypted = writer is not None and writer.get_extra_info("ssl_object") is not None
        if self._needs_tls and not encrypted:
            raise Error("the server offers no TLS, so it was told nothing; set tls to false, or")
        command: bytes = super()._connect_command()
        return command

    def abort(self) -> None:
        """Without a goodbye: after a failed handshake the library waits for one for ever."""
        for name in ("_io_writer", "_bare_io_writer"):
            writer = getattr(self._transport, name, None)
            if writer is not None:
                with contextlib.suppress(Exception):
                    writer.transport.abort()
