"""HTTP endpoints: where webhooks go."""

import dataclasses
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from refill.clock import Clock
from refill.connectors.webhook import CONTENT_TYPE, ENDPOINT, OWN_HEADERS, says_our_content_type
from refill.domain.errors import InUse, Invalid, NotFound
from refill.domain.pipeline import HttpEndpoint
from refill.service.databases import check_name
from refill.service.options import changed
from refill.service.paging import cut
from refill.store.port import PipelineStore
from refill.store.records import Page

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE = re.compile(r"[\x20-\x7e\x80-\xff\t]{0,4096}")


class Endpoints:
    def __init__(self, *, store: PipelineStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def create(
        self,
        *,
        team_id: int,
        uid: str,
        name: str,
        url: str,
        headers: Mapping[str, str],
        encrypted_headers: Mapping[str, str],
    ) -> HttpEndpoint:
        try:
            return self._store.get_endpoint(team_id, uid)  # the same request again
        except NotFound:
            pass
        check_name(name)
        now = self._clock()
        endpoint = HttpEndpoint(
            id=uid,
            team_id=team_id,
            name=name,
            url=url,
            headers=dict(headers),
            encrypted_headers=dict(encrypted_headers),
            created_at=now,
            updated_at=now,
        )
        _check(endpoint)
        return self._store.insert_endpoint(endpoint)

    def update(
        self,
        *,
        team_id: int,
        id_or_name: str,
        name: str | None = None,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
        encrypted_headers: Mapping[str, str] | None = None,
    ) -> HttpEndpoint:
        """What is not given stays; a masked header sent back keeps its value."""
        endpoint = self.get(team_id, id_or_name)
        if name is not None:
            check_name(name)
        secret = endpoint.encrypted_headers
        if encrypted_headers is not None:
            kept = changed(secret, encrypted_headers)
            secret = {header: kept[header] for header in encrypted_headers if header in kept}
        updated = dataclasses.replace(
            endpoint,
            name=endpoint.name if name is None else name,
            url=endpoint.url if url is None else url,
            headers=endpoint.headers if headers is None else dict(headers),
            encrypted_headers=secret,
            updated_at=self._clock(),
        )
        _check(updated)
        return self._store.update_endpoint(updated)

    def get(self, team_id: int, id_or_name: str) -> HttpEndpoint:
        return self._store.get_endpoint(team_id, id_or_name)

    def list_all(
        self, team_id: int, *, limit: int | None, cursor: str | None
    ) -> Page[HttpEndpoint]:
        found = self._store.list_endpoints(team_id)
        return cut(found, lambda endpoint: endpoint.id, limit=limit, cursor=cursor)

    def delete(self, team_id: int, id_or_name: str) -> HttpEndpoint:
        endpoint = self.get(team_id, id_or_name)
        for sink in self._store.list_sinks(team_id):
            if sink.destination_options.get(ENDPOINT) in (endpoint.id, endpoint.name):
                raise InUse(
                    f"The sink {sink.name} sends to this endpoint; delete or change it first.",
                    field=ENDPOINT,
                    other=sink.id,
                )
        self._store.delete_endpoint(team_id, endpoint.id)
        return endpoint


def _check(endpoint: HttpEndpoint) -> None:
    try:
        parts = urlsplit(endpoint.url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or re.search(r"[\x00-\x20\x7f]", endpoint.url):
        raise Invalid.of("url", "must be an http:// or https:// address")
    if urlsplit(endpoint.url).username is not None:
        raise Invalid.of("url", "must not hold a password; send it in encrypted_headers")
    for field, headers in (
        ("headers", endpoint.headers),
        ("encrypted_headers", endpoint.encrypted_headers),
    ):
        for name, value in headers.items():
            if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
                raise Invalid.of(field, f"{name!r} is not a header that can be sent")
            if name.lower() in OWN_HEADERS and not says_our_content_type(name, value):
                raise Invalid.of(
                    field,
                    f"{name} is set by refill itself, Content-Type to {CONTENT_TYPE}; leave it out",
                )
