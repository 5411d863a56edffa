"""RabbitMQ, from Debian's package, as a node of its own."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.absent import require
from tests.servers.postgres import free_port
from tests.servers.processes import accepts, running, temporary_folder

SCRIPTS = Path("/usr/lib/rabbitmq/bin")
TRIES = 3


@dataclass(frozen=True)
class RabbitServer:
    host: str
    port: int


@contextmanager
def running_rabbitmq() -> Iterator[RabbitServer]:
    """A port that was free when it was drawn may be somebody's when it is used, and this server
    needs three: it is begun anew with others."""
    for left in reversed(range(TRIES)):
        with ExitStack() as stack:
            try:
                server = stack.enter_context(_running_once())
            except RuntimeError:
                if not left:
                    raise
                continue
            yield server
            return


@contextmanager
def _running_once() -> Iterator[RabbitServer]:
    script = SCRIPTS / "rabbitmq-server"
    epmd = shutil.which("epmd")
    require(script.exists() and bool(epmd), "RabbitMQ", "apt-get install rabbitmq-server")
    assert epmd is not None
    port, distribution, mapper = free_port(), free_port(), free_port()
    with temporary_folder("refill-rabbit-") as folder:
        (folder / "enabled_plugins").write_text("[].\n")
        (folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{port}\n"
            "loopback_users.guest = true\n"
            "vm_memory_high_watermark.absolute = 512MB\n"
            "disk_free_limit.absolute = 10MB\n"
        )
        environment = {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            # the cookie and the port mapper are this node's own: it meets no other
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(mapper),
            "RABBITMQ_NODENAME": f"refill{port}@localhost",
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1",
        }
        log = folder / "server.log"
        # in the foreground: the one that the node starts itself would outlive it
        with (
            running([epmd, "-port", str(mapper)], log, lambda: accepts(mapper)),
            running([str(script)], log, lambda: _answers(port), environment=environment),
        ):
            yield RabbitServer("127.0.0.1", port)


def _answers(port: int) -> bool:
    import pika
    from pika.exceptions import AMQPError

    try:
        pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port)).close()
    except (AMQPError, OSError):
        return False
    return True
