"""Redis, from Debian's package, with one user who may do everything and one who may not write."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.absent import require
from tests.servers.postgres import free_port
from tests.servers.processes import accepts, running, temporary_folder


@dataclass(frozen=True)
class RedisServer:
    host: str
    port: int


@contextmanager
def running_redis() -> Iterator[RedisServer]:
    binary = shutil.which("redis-server")
    require(binary is not None, "Redis", "apt-get install redis-server")
    assert binary is not None
    port = free_port()
    with temporary_folder("refill-redis-") as folder:
        settings = {"port": port, "bind": "127.0.0.1", "dir": folder, "save": "", "databases": 1000}
        command = [
            binary,
            *(x for name, value in settings.items() for x in (f"--{name}", str(value))),
        ]
        with running(command, folder / "server.log", lambda: accepts(port)):
            yield RedisServer("127.0.0.1", port)
