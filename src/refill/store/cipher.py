"""Encryption of what must not be read off the store: connection options, secret headers."""

import base64
import os
import secrets
import stat
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import SecretStr

from refill.domain.errors import Misconfigured

KEY_FILE = "secret.key"
_FORM = "v1:"


class Cipher(Protocol):
    def seal(self, text: str, bound_to: str) -> str:
        """Text that only `open` with the same `bound_to` gives back."""

    def open(self, sealed: str, bound_to: str) -> str: ...


class AesCipher:
    """AES-256-GCM. Bound to its row, so that a sealed value copied to another row is refused."""

    def __init__(self, secret: str) -> None:
        derive = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"refill options")
        self._aead = AESGCM(derive.derive(secret.encode()))

    def seal(self, text: str, bound_to: str) -> str:
        nonce = os.urandom(12)
        sealed = self._aead.encrypt(nonce, text.encode(), bound_to.encode())
        return _FORM + base64.b64encode(nonce + sealed).decode()

    def open(self, sealed: str, bound_to: str) -> str:
        try:
            raw = base64.b64decode(sealed.removeprefix(_FORM))
            return self._aead.decrypt(raw[:12], raw[12:], bound_to.encode()).decode()
        except (InvalidTag, ValueError):
            raise Misconfigured(
                f"The stored secrets of {bound_to} cannot be decrypted: the secret key is not the "
                f"one they were encrypted with. Set REFILL_SECRET_KEY (or put back {KEY_FILE} in "
                "the home directory) as it was."
            ) from None


def load_cipher(secret_key: SecretStr | str | None, home: Path) -> AesCipher:
    """With the given key, or the one in the home directory, which is made if there is none."""
    if isinstance(secret_key, SecretStr):
        secret_key = secret_key.get_secret_value()
    return AesCipher(secret_key or _read_key(home / KEY_FILE))


def _read_key(path: Path) -> str:
    try:
        if not path.exists():
            _make_key(path)
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            raise Misconfigured(f"Others may read the secret key {path}: run chmod 600 {path}.")
        key = path.read_text().strip()
    except OSError as error:
        raise Misconfigured(
            f"The secret key {path} cannot be read or made ({error.strerror}): make the home "
            "directory writable, or set REFILL_SECRET_KEY."
        ) from error
    if not key:
        raise Misconfigured(f"The secret key {path} is empty: put it back from a backup.")
    return key


def _make_key(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(32))
            file.flush()
            os.fsync(file.fileno())
        # link, not rename: of two processes that start at once, both must end with one key
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink(missing_ok=True)
