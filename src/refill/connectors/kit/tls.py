"""Certificates as users give them: PEM text, looked at before it is stored."""

import ssl
from typing import Annotated

from pydantic import BeforeValidator


def _read(value: object) -> object:
    """Nothing given is None: an empty text would mean that every authority is trusted."""
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    try:
        tls_context(value)
    except (ssl.SSLError, ValueError) as exc:
        raise ValueError(
            "must be certificates in PEM form, from -----BEGIN CERTIFICATE----- on"
        ) from exc
    return value


def tls_context(authority: str | None) -> ssl.SSLContext:
    """A client's: the server's certificate and name are checked. Without an authority of its own,
    by those that the machine trusts."""
    return ssl.create_default_context(cadata=authority)


Authority = Annotated[str | None, BeforeValidator(_read)]
