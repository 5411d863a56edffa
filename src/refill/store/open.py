"""Opening the store that the settings name."""

from pathlib import Path

from refill.domain.errors import Misconfigured
from refill.store.cipher import Cipher
from refill.store.engine import BUSY_SECONDS, open_postgres, open_sqlite
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
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Misconfigured(
            f"The home directory {home} cannot be made ({error.strerror}): name one that can be "
            "written, with --home or REFILL_HOME."
        ) from error
    return SqlStore(open_sqlite(home / FILE, busy_seconds=busy_seconds), cipher)
