"""HTTP endpoints: where requests of sinks go."""

import dataclasses
from collections.abc import Mapping

from refill.clock import Clock
from refill.domain.endpoint import check_endpoint, origin_of
from refill.domain.errors import InUse, Invalid, NotFound
from refill.domain.pipeline import HttpEndpoint
from refill.domain.stored import Stored
from refill.service.databases import check_name
from refill.service.options import MASK, changed, refuse_kept
from refill.service.paging import cut
from refill.service.references import References
from refill.store.port import PipelineStore
from refill.store.records import Page


class Endpoints:
    def __init__(self, *, store: PipelineStore, references: References, clock: Clock) -> None:
        self._store = store
        self._references = references
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
        check_endpoint(endpoint)
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
        check_endpoint(updated)
        if origin_of(updated.url) != origin_of(endpoint.url):
            self._refuse_moved(endpoint, updated, encrypted_headers or {})
        return self._store.update_endpoint(updated)

    def _refuse_moved(
        self, endpoint: HttpEndpoint, updated: HttpEndpoint, sent: Mapping[str, str]
    ) -> None:
        """Stored headers do not follow to another server, neither its own nor those of the sinks
        that send to it."""
        refuse_kept(
            (
                header
                for header, value in updated.encrypted_headers.items()
                if value == endpoint.encrypted_headers.get(header)
                and sent.get(header, MASK) == MASK
            ),
            "encrypted_headers.",
        )
        for user in self._references.users(Stored.HTTP_ENDPOINT, endpoint):
            if user.has_secrets:
                raise Invalid.of(
                    "url",
                    f"the {user.kind} {user.name} sends secrets of its own to this endpoint: make "
                    "another endpoint, and name it there together with them",
                )

    def get(self, team_id: int, id_or_name: str) -> HttpEndpoint:
        return self._store.get_endpoint(team_id, id_or_name)

    def list_all(
        self, team_id: int, *, limit: int | None, cursor: str | None
    ) -> Page[HttpEndpoint]:
        found = self._store.list_endpoints(team_id)
        return cut(found, lambda endpoint: endpoint.id, limit=limit, cursor=cursor)

    def delete(self, team_id: int, id_or_name: str) -> HttpEndpoint:
        endpoint = self.get(team_id, id_or_name)
        user = next(self._references.users(Stored.HTTP_ENDPOINT, endpoint), None)
        if user is not None:
            raise InUse(
                f"The {user.kind} {user.name} sends to this endpoint; delete or change it first.",
                field=user.option,
                other=user.id,
            )
        self._store.delete_endpoint(team_id, endpoint.id)
        return endpoint
