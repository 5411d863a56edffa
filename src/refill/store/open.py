"""Opening the store that the settings name."""

import errno
import os
from contextlib import suppress
from pathlib import Path

from refill.domain.errors import Misconfigured
from refill.store.backend import BUSY_SECONDS, open_postgres, open_sqlite
from refill.store.cipher import Cipher
from refill.store.port import Store
from refill.store.sql import SqlStore

FILE = "refill.db"


def open_store(
    url: str | None, home: Path, cipher: Cipher, *, busy_seconds: float = BUSY_SECONDS
) -> Store:
    """PostgreSQL by its URL, else SQLite in the home directory. Call `migrate` before use."""
    if url is not None:
        return SqlStore(open_postgres(url, busy_seconds=busy_seconds), cipher)
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        # made before SQLite makes it, which lets others read; what it keeps beside it is as it is
        os.close(os.open(home / FILE, os.O_RDWR | os.O_CREAT, 0o600))
        _shut(home)
        if not os.access(home, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise Misconfigured(
            f"The home directory {home} cannot be made or written ({error.strerror}): name another "
            "with --home or REFILL_HOME."
        ) from error
    return SqlStore(open_sqlite(home / FILE, busy_seconds=busy_seconds), cipher)


def _shut(home: Path) -> None:
    """What an earlier version left open to others; another user's files are not ours to change."""
    for name in (FILE, f"{FILE}-wal", f"{FILE}-shm"):
        path = home / name
        with suppress(OSError):
            if path.stat().st_mode & 0o077:
                path.chmod(0o600)
