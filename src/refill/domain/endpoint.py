"""What an HTTP endpoint may be: an address and headers that a request can be sent with."""

import re
from urllib.parse import unquote, urlsplit

from refill.domain.errors import Invalid
from refill.domain.pipeline import HttpEndpoint

# set by us on every request
OWN_HEADERS = frozenset(
    {
        *("host", "connection", "content-length", "content-type", "transfer-encoding"),
        *("idempotency-key", "refill-signature"),
    }
)
CONTENT_TYPE = "application/json"

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
# as HTTP has them, without the blanks around it that a receiver would drop
_HEADER_VALUE = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e\t]{0,4094}[\x21-\x7e])?)?")


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
    if (objection := object_to_header(name, value)) is not None:
        raise Invalid.of(field, objection)


def object_to_header(name: str, value: str) -> str | None:
    """Why it cannot be sent; None: it can."""
    if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
        return f"{name!r} is not a header that can be sent"
    if name.lower() in OWN_HEADERS and not says_our_content_type(name, value):
        return f"{name} is set by refill itself, Content-Type to {CONTENT_TYPE}; leave it out"
    return None


def object_to_path(path: str) -> str | None:
    """Why it cannot be added to an endpoint's URL; None: it stays below it."""
    plain, decoded = "", path
    while plain != decoded:  # whoever decodes it twice finds nothing new
        plain, decoded = decoded, unquote(decoded)
    if re.search(r"[\x00-\x20\x7f-\U0010ffff\\#]", plain):
        return "must be a path: letters, digits and the signs of a URL, without # and backslashes"
    # some servers take what follows a semicolon for no part of the name
    segments = (part.partition(";")[0] for part in plain.partition("?")[0].split("/"))
    if any(segment in (".", "..") for segment in segments):
        return "must stay below the endpoint's URL: no . or .. in it"
    return None
