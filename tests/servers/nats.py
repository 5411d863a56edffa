"""NATS with JetStream, from Debian's package."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.absent import require
from tests.servers.postgres import free_port
from tests.servers.processes import accepts, running, temporary_folder

CONFIG = """
listen: "127.0.0.1:{port}"
jetstream {{ store_dir: "{folder}/jetstream" }}
max_payload: 262144
authorization {{ users: [ {{ user: refill, password: secret }} ] }}
"""


@dataclass(frozen=True)
class NatsServer:
    host: str
    port: int
    username: str = "refill"
    password: str = "secret"

    @property
    def url(self) -> str:
        return f"nats://{self.username}:{self.password}@{self.host}:{self.port}"


@contextmanager
def running_nats() -> Iterator[NatsServer]:
    binary = shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin")
    require(binary is not None, "NATS", "apt-get install nats-server")
    assert binary is not None
    port = free_port()
    with temporary_folder("refill-nats-") as folder:
        config = folder / "nats.conf"
        config.write_text(CONFIG.format(port=port, folder=folder))
        with running([binary, "-c", str(config)], folder / "server.log", lambda: accepts(port)):
            yield NatsServer("127.0.0.1", port)
