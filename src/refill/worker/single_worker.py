"""One worker per home with an embedded store: held by the operating system, freed by any death."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from refill.domain.errors import Misconfigured

FILE = "worker.lock"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@contextmanager
def only_worker(home: Path) -> Iterator[None]:
    """Misconfigured when another worker runs in this home."""
    home.mkdir(parents=True, exist_ok=True)
    with open(home / FILE, "a+", opener=_private) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            file.seek(0)
            holder = file.read().strip()
            raise Misconfigured(
                f"Another worker (process {holder or 'unknown'}) runs in {home}; stop it, "
                "or set REFILL_STORE_URL to a PostgreSQL, which several workers can share."
            ) from exc
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
