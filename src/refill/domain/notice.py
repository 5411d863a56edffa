"""What people are told of backfills, who is told, and what became of telling them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from refill.domain.pipeline import Kind


class EventType(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"
    STALLED = "stalled"  # nothing of it moved for some time
    NEEDS_ATTENTION = "needs_attention"  # it goes on trying, and keeps failing


class ReceiverType(StrEnum):
    WEBHOOK = "webhook"  # the event as JSON, signed
    SLACK = "slack"  # a sentence, in the form of Slack's incoming webhooks
    EMAIL = "email"


class DeliveryState(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"  # given up


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    """Of a team, or of one of its sinks or transfers."""

    id: str
    team_id: int
    kind: Kind | None = None
    pipeline_id: str | None = None  # with `kind`; without both: of everything of the team
    type: ReceiverType
    url: str | None = None
    secret: str | None = None
    recipients: tuple[str, ...] = ()
    events: frozenset[EventType] = frozenset(EventType)
    created_at: datetime
    updated_at: datetime

    def __repr__(self) -> str:
        return f"Receiver(id={self.id!r}, type={self.type!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    id: int
    team_id: int
    kind: Kind
    pipeline_id: str
    type: EventType
    body: Mapping[str, Any]  # of the backfill, as it was then
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """An event on its way to one receiver; without one, by mail to `recipients`."""

    id: int
    event: Event
    receiver_id: str | None
    recipients: tuple[str, ...] = ()
    state: DeliveryState = DeliveryState.PENDING
    attempts: int = 0
    error: str | None = None
    ended_at: datetime | None = field(default=None)

    @property
    def place(self) -> str:
        """What is held up when it is not reached."""
        return self.receiver_id or ",".join(self.recipients)
