"""Who is told of a team's backfills, and what became of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from refill.clock import Clock
from refill.domain.errors import Invalid, NotFound
from refill.domain.notice import Delivery, EventType, Receiver, ReceiverType
from refill.domain.pipeline import Kind
from refill.service.options import MASK
from refill.store.port import Store

DELIVERIES_SHOWN = 200
_ADDRESS = re.compile(r"[^@\s,<>\"]+@[^@\s,<>\"]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverDraft:
    type: ReceiverType
    url: str | None = None
    secret: str | None = None
    recipients: tuple[str, ...] = ()
    events: frozenset[EventType] = field(default=frozenset(EventType))
    sink: str | None = None  # by name or id
    transfer: int | None = None


class Notifications:
    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def create(self, team_id: int, uid: str, draft: ReceiverDraft) -> Receiver:
        try:
            return self._store.get_receiver(team_id, uid)  # the same request again
        except NotFound:
            pass
        now = self._clock()
        receiver = Receiver(
            id=uid,
            team_id=team_id,
            type=draft.type,
            created_at=now,
            updated_at=now,
            **self._fields(team_id, draft),
        )
        return self._store.insert_receiver(receiver)

    def update(self, team_id: int, receiver_id: str, draft: ReceiverDraft) -> Receiver:
        """Replaces the whole; a secret that is masked or left out stays."""
        stored = self.get(team_id, receiver_id)
        fields = self._fields(team_id, draft)
        if fields["secret"] in (None, MASK):
            fields["secret"] = stored.secret
        changed = replace(stored, type=draft.type, updated_at=self._clock(), **fields)
        return self._store.update_receiver(changed)

    def get(self, team_id: int, receiver_id: str) -> Receiver:
        return self._store.get_receiver(team_id, receiver_id)

    def list_all(self, team_id: int) -> tuple[Receiver, ...]:
        return self._store.list_receivers(team_id)

    def delete(self, team_id: int, receiver_id: str) -> None:
        """What was not yet delivered to it is dropped."""
        self._store.delete_receiver(team_id, receiver_id)

    def deliveries(self, team_id: int) -> tuple[Delivery, ...]:
        return self._store.list_deliveries(team_id, DELIVERIES_SHOWN)

    def sink_names(self, team_id: int) -> Mapping[str, str]:
        return {sink.id: sink.name for sink in self._store.list_sinks(team_id)}

    def _fields(self, team_id: int, draft: ReceiverDraft) -> dict[str, Any]:
        _check(draft)
        kind, pipeline = None, None
        if draft.sink is not None:
            kind, pipeline = Kind.SINK, self._store.get_sink(team_id, draft.sink).id
        if draft.transfer is not None:
            found = self._store.get_transfer(team_id, draft.transfer)
            kind, pipeline = Kind.TRANSFER, str(found.id)
        return {
            "kind": kind,
            "pipeline_id": pipeline,
            "url": draft.url,
            "secret": draft.secret,
            "recipients": draft.recipients,
            "events": draft.events,
        }


def _check(draft: ReceiverDraft) -> None:
    if draft.sink is not None and draft.transfer is not None:
        raise Invalid.of("transfer", "give a sink or a transfer, not both")
    if not draft.events:
        raise Invalid.of("events", "must name at least one")
    if draft.type is ReceiverType.EMAIL:
        if draft.url is not None or not draft.recipients:
            raise Invalid.of("recipients", "mails need recipients, and no url")
        for address in draft.recipients:
            if not _ADDRESS.fullmatch(address):
                raise Invalid.of("recipients", f"{address!r} is no address")
        return
    if draft.recipients:
        raise Invalid.of("recipients", "belong to mails")
    try:
        parts = urlsplit(draft.url or "")
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or re.search(r"[\x00-\x20\x7f]", draft.url or ""):
        raise Invalid.of("url", "must be an http:// or https:// address")
