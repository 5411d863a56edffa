"""What an HTTP endpoint may be: an address and headers that a request can be sent with."""

import re
from urllib.parse import urlsplit

from refill.domain.errors import Invalid
from refill.domain.pipeline import HttpEndpoint

# set by us on every request
OWN_HEADERS = frozenset({"host", "content-length", "content-type", "transfer-encoding"})
CONTENT_TYPE = "application/json"

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE = re.compile(r"[\x20-\x7e\x80-\xff\t]{0,4096}")


def check_endpoint(endpoint: HttpEndpoint) -> None:
    """Invalid, by field, where no request could go there."""
    _check_url(endpoint.url)
    for field, headers in (
        ("headers", endpoint.headers),
        ("encrypted_headers", endpoint.encrypted_headers),
    ):
        for name, value in headers.items():
            _check_header(field, name, value)


def origin_of(url: str) -> tuple[str, str, int | None]:
    """(scheme, host, port): who gets the headers of a request to it."""
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname or "", port


def says_our_content_type(name: str, value: str) -> bool:
    """People write this header out; it changes nothing, since every request has it."""
    return name.lower() == "content-type" and value.strip().lower() == CONTENT_TYPE


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or re.search(r"[\x00-\x20\x7f]", url):
        raise Invalid.of("url", "must be an http:// or https:// address")
    if urlsplit(url).username is not None:
        raise Invalid.of("url", "must not hold a password; send it in encrypted_headers")


def _check_header(field: str, name: str, value: str) -> None:
    if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
        raise Invalid.of(field, f"{name!r} is not a header that can be sent")
    if name.lower() in OWN_HEADERS and not says_our_content_type(name, value):
        raise Invalid.of(
            field, f"{name} is set by refill itself, Content-Type to {CONTENT_TYPE}; leave it out"
        )
