"""Databases: the sources that are read."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from refill.clock import Clock
from refill.connectors.kit.contract import Connector
from refill.domain.errors import Invalid, NotFound, StoreBusy, TerminalError, TransientError
from refill.domain.pipeline import Database
from refill.service.catalogue import Catalogue
from refill.service.identity import is_uid, new_uid
from refill.service.options import (
    changed,
    masked,
    parse_options,
    refuse_moved_secrets,
    reveal,
)
from refill.service.paging import cut
from refill.store.port import PipelineStore
from refill.store.records import Page

_IN_A_URL = ("hostname", "port", "database", "username", "password")
_SSL_MODES = ("disable", "require", "verify-ca", "verify-full")
_NO_WISH = ("", "allow", "prefer")  # these take TLS or leave it: what is usual decides
# what a URL may ask for to be safer, and we cannot keep by its name
_UNKEPT = {
    "sslrootcert": "give the authority's certificate as ca_certificate",
    "sslcert": "give the certificate as client_certificate",
    "sslkey": "give the key as client_key",
    **dict.fromkeys(
        (
            *(
                "sslcrl",
                "sslcrldir",
                "channel_binding",
                "require_auth",
                "requirepeer",
                "gssencmode",
            ),
            *("requiressl", "ssl_min_protocol_version", "ssl_max_protocol_version"),
        ),
        "leave it out",
    ),
}


class Databases:
    def __init__(
        self,
        *,
        store: PipelineStore,
        connectors: Mapping[str, Connector],
        catalogue: Catalogue,
        clock: Clock,
    ) -> None:
        self._store = store
        self._connectors = connectors
        self._catalogue = catalogue
        self._clock = clock

    def create(
        self,
        *,
        team_id: int,
        uid: str,
        name: str,
        fields: Mapping[str, Any],
        kind: str = "postgres",
        url: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        replication_slots: Sequence[Mapping[str, Any]] = (),
        extra: Mapping[str, Any] | None = None,
        test: bool = True,
    ) -> Database:
        """`test`: Invalid where it cannot be connected to. Without it the source may be down: its
        tables are then looked up when they are needed."""
        if (made := self._find(team_id, uid)) is not None:
            return made  # the same request again
        check_name(name)
        connector = self._connectors[kind]
        options = parse_options(connector, connection_fields(url, fields))
        now = self._clock()
        database = Database(
            id=uid,
            team_id=team_id,
            name=name,
            type=kind,
            options=reveal(options),
            annotations=dict(annotations or {}),
            replication_slots=tuple(_with_ids(replication_slots)),
            extra=dict(extra or {}),
            created_at=now,
            updated_at=now,
        )
        if test and (reason := self._attempt(self._catalogue.test, database)) is not None:
            raise Invalid(f"The database cannot be used: {reason}", reason="connection_failed")
        database = self._store.insert_database(database)
        self._catalogue.refresh_if_reachable(database)
        return self._store.get_database(team_id, database.id)

    def update(
        self,
        *,
        team_id: int,
        id_or_name: str,
        name: str | None = None,
        fields: Mapping[str, Any] | None = None,
        url: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        replication_slots: Sequence[Mapping[str, Any]] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Database:
        """What is not given stays. A running backfill reads the new address and password."""
        database = self.get(team_id, id_or_name)
        if name is not None:
            check_name(name)
        connector = self._connectors[database.type]
        sent = connection_fields(url, fields or {})
        options = reveal(parse_options(connector, changed(database.options, sent)))
        refuse_moved_secrets(connector, database.options, options, sent)
        moved = options != dict(database.options)
        updated = self._store.update_database(
            dataclasses.replace(
                database,
                name=database.name if name is None else name,
                options=options,
                annotations=database.annotations if annotations is None else dict(annotations),
                replication_slots=(
                    database.replication_slots
                    if replication_slots is None
                    else tuple(_with_ids(replication_slots))
                ),
                extra=_merged(database.extra, extra or {}),
                updated_at=self._clock(),
            )
        )
        if moved:
            self._catalogue.refresh_if_reachable(updated)
        return self._store.get_database(team_id, updated.id)

    def get(self, team_id: int, id_or_name: str) -> Database:
        return self._store.get_database(team_id, id_or_name)

    def list_all(self, team_id: int, *, limit: int | None, cursor: str | None) -> Page[Database]:
        found = self._store.list_databases(team_id)
        return cut(found, lambda database: database.id, limit=limit, cursor=cursor)

    def title(self, database: Database) -> str:
        """What its system is called."""
        connector = self._connectors.get(database.type)
        return connector.title if connector else database.type

    def shown_options(self, database: Database) -> dict[str, Any]:
        """How to reach it, its secrets masked."""
        return masked(self._connectors.get(database.type), database.options)

    def delete(self, team_id: int, id_or_name: str) -> Database:
        database = self.get(team_id, id_or_name)
        self._store.delete_database(team_id, database.id)
        return database

    def test(self, team_id: int, id_or_name: str) -> str | None:
        """None, or what a person should read when it cannot be used."""
        return self._attempt(self._catalogue.test, self.get(team_id, id_or_name))

    def refresh(self, team_id: int, id_or_name: str) -> str | None:
        """None, or why the catalogue could not be read."""
        return self._attempt(self._catalogue.refresh, self.get(team_id, id_or_name))

    def _attempt(self, look: Callable[[Database], object], database: Database) -> str | None:
        try:
            look(database)
        except StoreBusy:
            raise  # it is ours that is away, not theirs
        except (TransientError, TerminalError) as exc:
            return exc.message
        return None

    def _find(self, team_id: int, uid: str) -> Database | None:
        try:
            return self._store.get_database(team_id, uid)
        except NotFound:
            return None


def check_name(name: str) -> None:
    if is_uid(name):
        raise Invalid.of("name", "must not look like an id; choose a word")


def connection_fields(url: str | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Invalid when both say where the database is: which of them was meant, nobody knows."""
    beside = [name for name in fields if name in _IN_A_URL]
    if url is not None and beside:
        raise Invalid.of("url", f"says where the database is; leave out {', '.join(beside)}")
    return {**parse_url(url), **fields}


def parse_url(url: str | None) -> dict[str, Any]:
    """The typed fields of a connection URL; nothing else of it is kept: no sockets, no passfile,
    no service, no options."""
    if url is None:
        return {}
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as exc:
        raise Invalid.of("url", f"cannot be read: {exc}") from exc
    if parts.scheme not in ("postgres", "postgresql"):
        raise Invalid.of("url", "must begin with postgresql://")
    hostname = unquote(parts.hostname or "")
    if not hostname or hostname.startswith("/"):
        raise Invalid.of("url", "must name a host; sockets are not supported")
    found: dict[str, Any] = {
        "hostname": hostname,
        "port": port,
        "database": unquote(parts.path.lstrip("/")) or None,
        "username": unquote(parts.username) if parts.username else None,
        "password": unquote(parts.password) if parts.password else None,
        "sslmode": _ssl_mode(parse_qs(parts.query)),
    }
    return {name: value for name, value in found.items() if value is not None}


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """A primary that is sent back as it was read has no password: the one that is kept stays."""
    merged = {**old, **new}
    known = (old.get("primary") or {}).get("password")
    if merged.get("primary") and merged["primary"].get("password") is None and known is not None:
        merged["primary"] = {**merged["primary"], "password": known}
    return merged


def _ssl_mode(query: Mapping[str, Sequence[str]]) -> str | None:
    """What the URL asks for is kept, or refused: never weakened."""
    for name, instead in _UNKEPT.items():
        if name in query:
            raise Invalid.of("url", f"cannot keep {name}; {instead}")
    mode = query.get("sslmode", [""])[-1]
    if mode in _NO_WISH:
        return None
    if mode not in _SSL_MODES:
        raise Invalid.of("url", f"sslmode must be one of {', '.join(_SSL_MODES)}")
    return mode


def _with_ids(slots: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"id": new_uid(), "status": "active", **slot} for slot in slots]
