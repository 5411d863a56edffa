"""Events of backfills, who is told of them, and the telling."""

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from refill.domain.backfill import Status
from refill.domain.notice import (
    Delivery,
    DeliveryState,
    Event,
    EventType,
    Receiver,
    ReceiverType,
)
from refill.domain.pipeline import Kind
from refill.domain.slice import SliceState
from refill.store.changes import note
from refill.store.connections import expect_one
from refill.store.part import Part
from refill.store.rows import from_json, to_datetime, to_datetime_or_none, to_json, to_micros
from refill.store.tables import (
    WAITS_FOR_SINK,
    among,
    backfills,
    deliveries,
    events,
    receivers,
    slices,
    transfers,
)

SECOND = 1_000_000
SPREAD_AT_ONCE = 100


class Notices(Part):
    def insert_receiver(self, receiver: Receiver) -> Receiver:
        values = self._receiver_values(receiver) | {
            "id": receiver.id,
            "team_id": receiver.team_id,
            "created_at": to_micros(receiver.created_at),
        }
        with self._backend.write() as connection:
            connection.execute(receivers.insert().values(values))
        return receiver

    def update_receiver(self, receiver: Receiver) -> Receiver:
        query = receivers.update().where(
            receivers.c.id == receiver.id, receivers.c.team_id == receiver.team_id
        )
        with self._backend.write() as connection:
            result = connection.execute(query.values(self._receiver_values(receiver)))
            expect_one(result, "notification", receiver.id)
        return receiver

    def list_receivers(self, team_id: int) -> tuple[Receiver, ...]:
        query = sa.select(receivers).where(receivers.c.team_id == team_id)
        with self._backend.read() as connection:
            rows = connection.execute(query.order_by(receivers.c.created_at, receivers.c.id))
            return tuple(self._receiver(row) for row in rows.mappings())

    def get_receiver(self, team_id: int, receiver_id: str) -> Receiver:
        query = sa.select(receivers).where(
            receivers.c.id == receiver_id, receivers.c.team_id == team_id
        )
        with self._backend.read() as connection:
            return self._receiver(self._one(connection, query, "notification", receiver_id))

    def delete_receiver(self, team_id: int, receiver_id: str) -> None:
        with self._backend.write() as connection:
            query = receivers.delete().where(
                receivers.c.id == receiver_id, receivers.c.team_id == team_id
            )
            expect_one(connection.execute(query), "notification", receiver_id)
            waiting = deliveries.c.state == DeliveryState.PENDING.value
            connection.execute(
                deliveries.delete().where(deliveries.c.receiver_id == receiver_id, waiting)
            )

    def list_deliveries(self, team_id: int, limit: int) -> tuple[Delivery, ...]:
        query = _joined().where(deliveries.c.team_id == team_id).order_by(deliveries.c.id.desc())
        with self._backend.read() as connection:
            rows = connection.execute(query.limit(limit)).mappings().all()
        return tuple(_delivery(row) for row in rows)

    def note_troubles(self, stalled_seconds: float, failures: int) -> int:
        active = (
            among(backfills.c.status, Status.CREATED, Status.SCHEDULED, Status.RUNNING),
            ~WAITS_FOR_SINK,
        )
        failing = (
            sa.select(slices.c.error)
            .where(
                slices.c.backfill_id == backfills.c.id,
                among(slices.c.state, SliceState.PENDING),
                slices.c.failures >= failures,
            )
            .order_by(slices.c.index)
            .limit(1)
            .scalar_subquery()
        )

        def found(connection: sa.Connection, now: int) -> list[tuple[EventType, Any]]:
            since = now - round(stalled_seconds * SECOND)
            still = sa.select(backfills, sa.null().label("said")).where(
                *active,
                backfills.c.updated_at < since,
                ~_told(EventType.STALLED, backfills.c.updated_at),
            )
            trying = sa.select(backfills, failing.label("said")).where(
                *active,
                failing.is_not(None),
                ~_told(EventType.NEEDS_ATTENTION, sa.func.coalesce(backfills.c.started_at, 0)),
            )
            queries = ((EventType.STALLED, still), (EventType.NEEDS_ATTENTION, trying))
            return [
                (event, row)
                for event, query in queries
                for row in connection.execute(query).mappings().all()
            ]

        with self._backend.read() as connection:
            if not found(connection, self._backend.now(connection)):
                return 0  # a look that finds nothing keeps nobody from writing
        with self._backend.write() as connection:
            now = self._backend.now(connection)
            troubles = found(connection, now)
            for event, row in troubles:
                note(connection, row, event, now, row["said"])
        return len(troubles)

    def spread_events(self) -> int:
        waiting = sa.select(events).where(events.c.spread.is_(sa.false())).order_by(events.c.id)
        with self._backend.read() as connection:
            if connection.execute(waiting.limit(1)).first() is None:
                return 0
        with self._backend.write() as connection:
            query = waiting.limit(SPREAD_AT_ONCE).with_for_update(skip_locked=True)
            rows = connection.execute(query).mappings().all()
            for row in rows:
                told = self._told_of(connection, row)
                if told:
                    connection.execute(deliveries.insert(), told)
                connection.execute(
                    events.update().where(events.c.id == row["id"]).values(spread=True)
                )
        return len(rows)

    def _told_of(self, connection: sa.Connection, event: Any) -> list[dict[str, Any]]:
        values = {
            "event_id": event["id"],
            "team_id": event["team_id"],
            "state": DeliveryState.PENDING.value,
        }
        query = sa.select(receivers).where(receivers.c.team_id == event["team_id"])
        told = [
            values | {"receiver_id": row["id"], "recipients": "[]"}
            for row in connection.execute(query).mappings()
            if event["type"] in from_json(row["events"])
            and row["kind"] in (None, event["kind"])
            and row["pipeline_id"] in (None, event["pipeline_id"])
        ]
        if event["kind"] == Kind.TRANSFER.value:
            asked = sa.select(transfers.c.definition).where(
                transfers.c.id == int(event["pipeline_id"])
            )
            definition = from_json(connection.execute(asked).scalar() or "{}")
            people = (definition.get("extra") or {}).get("notification_recipients") or []
            if people:
                told.append(values | {"receiver_id": None, "recipients": to_json(people)})
        return told

    def claim_deliveries(
        self, limit: int, lease_seconds: float, busy: Collection[str]
    ) -> tuple[tuple[Delivery, Receiver | None], ...]:
        query = (
            _joined()
            .where(deliveries.c.state == DeliveryState.PENDING.value)
            .order_by(deliveries.c.id)
        )
        with self._backend.read() as connection:
            now = self._backend.now(connection)
            due = query.where(deliveries.c.not_before <= now).limit(1)
            if connection.execute(due).first() is None:
                return ()
        with self._backend.write() as connection:
            now = self._backend.now(connection)
            due = query.where(deliveries.c.not_before <= now)
            if known := sorted(name for name in busy):
                due = due.where(sa.func.coalesce(deliveries.c.receiver_id, "").not_in(known))
            rows = connection.execute(
                due.limit(limit * 10).with_for_update(of=deliveries, skip_locked=True)
            ).mappings()
            chosen: dict[str, Delivery] = {}
            for row in rows:
                found = _delivery(row)
                if found.place not in busy and len(chosen) < limit:
                    chosen.setdefault(found.place, found)
            for delivery in chosen.values():
                until = now + round(lease_seconds * SECOND)
                connection.execute(
                    deliveries.update()
                    .where(deliveries.c.id == delivery.id)
                    .values(not_before=until, attempts=deliveries.c.attempts + 1)
                )
            ids = [found.receiver_id for found in chosen.values() if found.receiver_id]
            stored = connection.execute(sa.select(receivers).where(receivers.c.id.in_(ids)))
            known_receivers = {row["id"]: self._receiver(row) for row in stored.mappings()}
        return tuple(
            (found, known_receivers.get(found.receiver_id or "")) for found in chosen.values()
        )

    def end_delivery(
        self, delivery_id: int, error: str | None, retry_seconds: float | None
    ) -> None:
        with self._backend.write() as connection:
            now = self._backend.now(connection)
            values: dict[str, Any] = {"error": error, "ended_at": now}
            values["state"] = (DeliveryState.FAILED if error else DeliveryState.DELIVERED).value
            if error and retry_seconds is not None:
                values |= {
                    "state": DeliveryState.PENDING.value,
                    "not_before": now + round(retry_seconds * SECOND),
                    "ended_at": None,
                }
            query = deliveries.update().where(deliveries.c.id == delivery_id)
            connection.execute(query.values(values))

    def _receiver_values(self, receiver: Receiver) -> dict[str, Any]:
        options = {
            "url": receiver.url,
            "secret": receiver.secret,
            "recipients": list(receiver.recipients),
        }
        return {
            "kind": receiver.kind.value if receiver.kind else None,
            "pipeline_id": receiver.pipeline_id,
            "type": receiver.type.value,
            "options": self._cipher.seal(to_json(options), f"receiver {receiver.id}"),
            "events": to_json(sorted(receiver.events)),
            "updated_at": to_micros(receiver.updated_at),
        }

    def _receiver(self, row: Any) -> Receiver:
        options = from_json(self._cipher.open(row["options"], f"receiver {row['id']}"))
        return Receiver(
            id=row["id"],
            team_id=row["team_id"],
            kind=Kind(row["kind"]) if row["kind"] else None,
            pipeline_id=row["pipeline_id"],
            type=ReceiverType(row["type"]),
            url=options["url"],
            secret=options["secret"],
            recipients=tuple(options["recipients"]),
            events=frozenset(EventType(word) for word in from_json(row["events"])),
            created_at=to_datetime(row["created_at"]),
            updated_at=to_datetime(row["updated_at"]),
        )


def _told(event: EventType, since: Any) -> Any:
    """Whether it was said of this backfill since then."""
    return sa.exists().where(
        events.c.backfill_id == backfills.c.id,
        events.c.type == event.value,
        events.c.created_at >= since,
    )


def _joined() -> Any:
    of_event = [
        events.c[name].label(f"event_{name}")
        for name in ("kind", "pipeline_id", "type", "body", "created_at")
    ]
    return sa.select(deliveries, *of_event).join(events, events.c.id == deliveries.c.event_id)


def _delivery(row: Any) -> Delivery:
    return Delivery(
        id=row["id"],
        event=Event(
            id=row["event_id"],
            team_id=row["team_id"],
            kind=Kind(row["event_kind"]),
            pipeline_id=row["event_pipeline_id"],
            type=EventType(row["event_type"]),
            body=from_json(row["event_body"]),
            created_at=to_datetime(row["event_created_at"]),
        ),
        receiver_id=row["receiver_id"],
        recipients=tuple(from_json(row["recipients"])),
        state=DeliveryState(row["state"]),
        attempts=row["attempts"],
        error=row["error"],
        ended_at=to_datetime_or_none(row["ended_at"]),
    )
