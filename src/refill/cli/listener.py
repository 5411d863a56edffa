"""The API's own socket and loop: bound before anything else starts, stopped by a signal."""

import errno
import gc
import os
import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from refill.cli.output import Stopped
from refill.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI


def bind(settings: Settings) -> socket.socket:
    """A listening address, or one sentence that says why not."""
    try:
        family = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0][0]
        # named as TCP, or asyncio leaves Nagle's algorithm on, and each answer waits 40 ms
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
        listener.listen(128)
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        if error.errno == errno.EADDRINUSE:
            raise Stopped(
                f"Port {settings.port} of {settings.host} is in use; stop what listens there, "
                "or choose another with --port."
            ) from None
        code = error.errno or 0  # the resolver's own are negative
        why = os.strerror(code).lower() if code > 0 else str(error.strerror)
        raise Stopped(f"The API cannot listen on {where} ({why}); choose --host, --port.") from None
    return listener


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    reached = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(
        host, f"[{host}]" if ":" in host else host
    )
    return f"http://{reached}:{port}"


def listen(
    app: "FastAPI",
    listener: socket.socket,
    grace_seconds: float,
    on_answering: Callable[[], None] = lambda: None,
) -> None:
    """Answers until SIGTERM or SIGINT; requests under way are answered first."""
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            # what is loaded by now stays: the collector need not look at it again and again,
            # in the middle of an answer
            gc.freeze()
            on_answering()

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=max(1, int(min(grace_seconds, 10))),
        server_header=False,
    )
    # uvicorn raises the signal again once it has stopped: what we still have to close must not
    # be cut off by it
    previous = {each: signal.signal(each, lambda *_: None) for each in _STOPS}
    try:
        Server(config).run(sockets=[listener])
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)


_STOPS = (signal.SIGTERM, signal.SIGINT)
