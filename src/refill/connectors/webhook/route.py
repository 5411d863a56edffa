"""Where one request goes beside the endpoint's own URL, as the sink's routing says."""

from typing import NamedTuple
from urllib.parse import SplitResult, quote

from refill.connectors.kit.message_sink import headers_of
from refill.domain.endpoint import OWN_HEADERS
from refill.domain.errors import SinkRefused

METHODS = ("POST", "PUT", "PATCH", "DELETE")


class Route(NamedTuple):
    path: str | None = None  # added to the endpoint's
    method: str | None = None
    headers: str | None = None  # a JSON object

    def verb(self) -> str:
        method = (self.method or METHODS[0]).upper()
        if method not in METHODS:
            raise SinkRefused(f"The routing's method {method!r} is none of {', '.join(METHODS)}.")
        return method

    def target(self, parts: SplitResult) -> str:
        """Only the path and the query are the routing's: the host stays the one that was pinned."""
        if self.path is None:
            return parts.geturl()
        path, _, query = self.path.partition("?")
        if ".." in path.split("/"):
            raise SinkRefused("The routing's path leads out of the endpoint's; write it without ..")
        whole = f"{parts.path.rstrip('/')}/{path.lstrip('/')}"
        safe = quote(whole, safe="/%:@!$&'()*+,;=~")
        return parts._replace(path=safe, query=quote(query, safe="/%:@!$&'()*+,;=~?")).geturl()

    def more_headers(self) -> dict[str, str]:
        found = headers_of(self.headers)
        for name, value in found.items():
            if name.lower() in (*OWN_HEADERS, "content-type", "idempotency-key"):
                raise SinkRefused(f"The routing's header {name} is set by refill itself.")
            strange = any(ord(c) < 0x20 or ord(c) > 0x7E for c in name + value)
            if strange or not name.strip() or ":" in name:
                raise SinkRefused(f"The routing's header {name!r} is not one that can be sent.")
        return found
