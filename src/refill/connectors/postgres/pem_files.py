"""Certificates and keys as libpq wants them: by the name of a file, which nobody else can read."""

import os
import tempfile
from functools import lru_cache


class PemFile:
    """Holds a text for as long as it lives. In memory where the system can: nothing is left on a
    disk by a process that is killed."""

    def __init__(self, text: str) -> None:
        if hasattr(os, "memfd_create"):
            self._file = os.memfd_create("refill-pem")
            self.path = f"/proc/{os.getpid()}/fd/{self._file}"
        else:  # pragma: no cover
            self._file, self.path = tempfile.mkstemp(prefix="refill-", suffix=".pem")
        # libpq refuses a key that others may read
        os.fchmod(self._file, 0o600)
        os.write(self._file, text.encode())

    def __del__(self) -> None:
        os.close(self._file)
        if not self.path.startswith("/proc/"):  # pragma: no cover
            os.unlink(self.path)


@lru_cache(maxsize=256)
def _kept(text: str, process: int) -> PemFile:
    return PemFile(text)


def pem_path(text: str) -> str:
    """The name of a file with the text in it. One per text and process: a session's query may be
    cancelled later, by a connection of its own."""
    return _kept(text, os.getpid()).path
