"""Notifications over HTTP: ours, the original has none."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from refill.api.body import body_of
from refill.api.dialects.sinks.forms import Count, Listed, microseconds, seconds
from refill.api.dialects.sinks.read_back import ReadBack
from refill.api.dialects.sinks.router import needs, router
from refill.api.gate import MAX_ID, CallerParam, ServiceParam
from refill.api.route import UidParam
from refill.domain.access import Scope
from refill.domain.notice import Delivery, EventType, Receiver, ReceiverType
from refill.domain.pipeline import Kind
from refill.service import Service
from refill.service.notifications import ReceiverDraft
from refill.service.options import MASK

EventWord = Literal["completed", "failed", "stalled", "needs_attention"]
TypeWord = Literal["webhook", "slack", "email"]


class NotificationInput(ReadBack):
    type: TypeWord = Field(description="webhook: the event as JSON; slack: a sentence; email")
    url: Annotated[str, Field(min_length=1, max_length=2000)] | None = Field(
        None, description="webhook, slack: where it is posted to"
    )
    secret: Annotated[str, Field(min_length=1, max_length=1000)] | None = Field(
        None, description="webhook: key of the signature; it never comes back"
    )
    recipients: Annotated[list[str], Field(max_length=100)] = Field(
        default_factory=list, description="email: addresses"
    )
    events: Annotated[list[EventWord], Field(min_length=1)] | None = Field(
        None, description="what is told; all of it when left out"
    )
    sink: Annotated[str, Field(min_length=1, max_length=255)] | None = Field(
        None, description="only of this sink, by name or id"
    )
    transfer: Annotated[int, Field(ge=1, le=MAX_ID)] | None = Field(
        None, description="only of this transfer"
    )

    def to_draft(self) -> ReceiverDraft:
        words = list(EventType) if self.events is None else [EventType(w) for w in self.events]
        return ReceiverDraft(
            type=ReceiverType(self.type),
            url=self.url,
            secret=self.secret,
            recipients=tuple(self.recipients),
            events=frozenset(words),
            sink=self.sink,
            transfer=self.transfer,
        )


class NotificationAnswer(BaseModel):
    id: str = Field(description="UUID")
    type: TypeWord = Field(description="how it is told")
    url: str | None = Field(description="where it is posted to")
    secret: str | None = Field(description="masked")
    recipients: list[str] = Field(description="addresses")
    events: list[EventWord] = Field(description="what is told")
    sink: str | None = Field(description="name of the sink; null: of all")
    transfer: int | None = Field(description="id of the transfer; null: of all")
    inserted_at: str = Field(description="when it was added")
    updated_at: str = Field(description="when it was last changed")


class DeletedNotification(BaseModel):
    id: str = Field(description="UUID of what is gone")
    deleted: Literal[True] = Field(description="it is gone")


class NotificationDelivery(BaseModel):
    id: int = Field(description="its id")
    notification: str | None = Field(description="UUID; null: a transfer's own recipients")
    recipients: list[str] = Field(description="of a transfer's own mails")
    event: dict[str, Any] = Field(description="the backfill as it was then")
    type: EventWord = Field(description="what is told")
    state: Literal["pending", "delivered", "failed"] = Field(description="failed: given up")
    attempts: Count = Field(description="how often it was tried")
    error: str | None = Field(description="why it was not taken, in a sentence")
    created_at: str = Field(description="when it happened")
    ended_at: str | None = Field(description="when it was taken, or given up")


BodyParam = Annotated[NotificationInput, body_of(NotificationInput)]


@router.post("/notifications", status_code=201, tags=["notifications"], **needs(Scope.SINKS_WRITE))
def create_notification(
    body: BodyParam, uid: UidParam, caller: CallerParam, service: ServiceParam
) -> NotificationAnswer:
    """Somebody who is told when a backfill completes, fails, stalls or needs somebody."""
    made = service.notifications.create(caller.team_id, uid, body.to_draft())
    return _show(service, made)


@router.get("/notifications", tags=["notifications"], **needs(Scope.SINKS_READ))
def list_notifications(caller: CallerParam, service: ServiceParam) -> Listed[NotificationAnswer]:
    found = service.notifications.list_all(caller.team_id)
    return Listed(data=[_show(service, each) for each in found])


@router.get("/notification_deliveries", tags=["notifications"], **needs(Scope.SINKS_READ))
def list_notification_deliveries(
    caller: CallerParam, service: ServiceParam
) -> Listed[NotificationDelivery]:
    """The newest, with what became of them."""
    found = service.notifications.deliveries(caller.team_id)
    return Listed(data=[_show_delivery(each) for each in found])


@router.get("/notifications/{notification}", tags=["notifications"], **needs(Scope.SINKS_READ))
def get_notification(
    notification: str, caller: CallerParam, service: ServiceParam
) -> NotificationAnswer:
    return _show(service, service.notifications.get(caller.team_id, notification))


@router.put("/notifications/{notification}", tags=["notifications"], **needs(Scope.SINKS_WRITE))
def update_notification(
    notification: str, body: BodyParam, caller: CallerParam, service: ServiceParam
) -> NotificationAnswer:
    """Replaces the whole; a secret that is left out stays."""
    changed = service.notifications.update(caller.team_id, notification, body.to_draft())
    return _show(service, changed)


@router.delete("/notifications/{notification}", tags=["notifications"], **needs(Scope.SINKS_WRITE))
def delete_notification(
    notification: str, caller: CallerParam, service: ServiceParam
) -> DeletedNotification:
    """What was not yet delivered to it is dropped."""
    service.notifications.delete(caller.team_id, notification)
    return DeletedNotification(id=notification, deleted=True)


def _show(service: Service, receiver: Receiver) -> NotificationAnswer:
    of = receiver.pipeline_id or ""
    names = service.notifications.sink_names(receiver.team_id) if receiver.kind else {}
    return NotificationAnswer(
        id=receiver.id,
        type=receiver.type.value,
        url=receiver.url,
        secret=MASK if receiver.secret else None,
        recipients=list(receiver.recipients),
        events=[event.value for event in EventType if event in receiver.events],
        sink=names.get(of, of) if receiver.kind is Kind.SINK else None,
        transfer=int(of) if receiver.kind is Kind.TRANSFER else None,
        inserted_at=seconds(receiver.created_at),
        updated_at=seconds(receiver.updated_at),
    )


def _show_delivery(delivery: Delivery) -> NotificationDelivery:
    return NotificationDelivery(
        id=delivery.id,
        notification=delivery.receiver_id,
        recipients=list(delivery.recipients),
        event=dict(delivery.event.body),
        type=delivery.event.type.value,
        state=delivery.state.value,
        attempts=delivery.attempts,
        error=delivery.error,
        created_at=seconds(delivery.event.created_at),
        ended_at=microseconds(delivery.ended_at),
    )
