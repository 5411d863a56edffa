"""Opening the store that the settings name."""

import errno
import os
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
        if not os.access(home, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise Misconfigured(
            f"The home directory {home} cannot be made or written ({error.strerror}): name another "
            "with --home or REFILL_HOME."
        ) from error
    return SqlStore(open_sqlite(home / FILE, busy_seconds=busy_seconds), cipher)
