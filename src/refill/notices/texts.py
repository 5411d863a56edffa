"""What is said of an event: as JSON for programs, as a sentence for people."""

import json
from datetime import UTC
from email.message import EmailMessage
from typing import Any

from refill.domain.notice import Event, EventType
from refill.domain.pipeline import Kind

_SAID = {
    EventType.COMPLETED: "is completed",
    EventType.FAILED: "has failed",
    EventType.STALLED: "does not move",
    EventType.NEEDS_ATTENTION: "keeps failing and is tried again",
}


def event_json(event: Event) -> bytes:
    moment = event.created_at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds")
    said: dict[str, Any] = {
        "id": event.id,
        "type": f"backfill.{event.type.value}",
        "team_id": event.team_id,
        "created_at": f"{moment}Z",
        "message": sentence(event),
        "backfill": dict(event.body),
    }
    return json.dumps(said, ensure_ascii=False).encode()


def slack_json(event: Event) -> bytes:
    return json.dumps({"text": sentence(event)}, ensure_ascii=False).encode()


def mail(event: Event, sender: str, recipients: tuple[str, ...]) -> EmailMessage:
    message = EmailMessage()
    message["Subject"] = " ".join(f"refill: {_what(event)} {_SAID[event.type]}".split())
    message["From"] = sender
    message["To"] = ", ".join(recipients)
    message["Message-ID"] = f"<event-{event.id}@refill>"
    lines = [sentence(event), ""]
    lines += [f"{name}: {value}" for name, value in event.body.items() if value is not None]
    message.set_content("\n".join(lines))
    return message


def sentence(event: Event) -> str:
    body = event.body
    said = f"{_what(event)} {_SAID[event.type]}"
    if event.type is EventType.COMPLETED:
        rejected = f", {body['rows_rejected']} rejected" if body["rows_rejected"] else ""
        said += f": {body['rows_delivered']} rows delivered{rejected}"
    elif body.get("error"):
        said += f": {body['error']}"
    return said.rstrip(".") + "."


def _what(event: Event) -> str:
    body = event.body
    of = f"the {event.kind.value} {body['pipeline']}"
    if event.kind is Kind.TRANSFER:
        return f"Backfill {body['id']} of {of} ({body['range_start']} to {body['range_end']})"
    return f"The backfill of {body['table']} of {of}"
