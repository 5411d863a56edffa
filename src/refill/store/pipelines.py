"""Sinks and transfers."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter

from refill.domain.pipeline import Condition, Kind, Schedule, Selection, Sink, SinkTable, Transfer
from refill.store.changes import cancel_all, rename_all
from refill.store.connections import Connections, by_id_or_name, expect_one
from refill.store.rows import (
    from_json,
    to_datetime,
    to_datetime_or_none,
    to_json,
    to_micros,
    to_micros_or_none,
)
from refill.store.tables import sinks, transfers
from refill.store.violations import named

_TABLES = TypeAdapter(tuple[SinkTable, ...])
_FILTER = TypeAdapter(tuple[Condition, ...])
_SCHEDULE = TypeAdapter(tuple[Schedule, ...])
_SINK_DEFINITION = (
    *("selection", "tables", "actions", "batch_size", "filter", "transform"),
    *("filter_sql", "message_path", "routing", "enrichment"),
    *("timestamp_format", "numeric_format", "max_retry_count", "max_rejects", "annotations"),
)
# what sinks have that were stored before there was a choice: their readers know numbers
_SINK_BEFORE = {"numeric_format": "number"}
_TRANSFER_DEFINITION = (
    *("table", "query", "date_column", "timezone", "columns", "transform"),
    *("schedule", "max_rejects", "extra"),
)


class Pipelines(Connections):
    def insert_sink(self, sink: Sink) -> Sink:
        values = self._sink_values(sink) | {
            "id": sink.id,
            "team_id": sink.team_id,
            "created_at": to_micros(sink.created_at),
        }
        with named("sink", sink.name), self._backend.write() as connection:
            connection.execute(sinks.insert().values(values))
        return sink

    def list_sinks(self, team_id: int) -> tuple[Sink, ...]:
        query = sa.select(sinks).where(sinks.c.team_id == team_id)
        with self._backend.read() as connection:
            rows = connection.execute(query.order_by(sinks.c.created_at, sinks.c.id)).mappings()
            return tuple(self._sink(row) for row in rows)

    def get_sink(self, team_id: int, id_or_name: str) -> Sink:
        with self._backend.read() as connection:
            query = by_id_or_name(sinks, team_id, id_or_name)
            return self._sink(self._one(connection, query, "sink", id_or_name))

    def update_sink(self, sink: Sink) -> Sink:
        query = (
            sinks.update()
            .where(sinks.c.id == sink.id, sinks.c.team_id == sink.team_id)
            .values(self._sink_values(sink))
        )
        with named("sink", sink.name), self._backend.write() as connection:
            expect_one(connection.execute(query), "sink", sink.id)
            rename_all(connection, Kind.SINK, sink.id, sink.name)
        return self.get_sink(sink.team_id, sink.id)

    def delete_sink(self, team_id: int, sink_id: str) -> None:
        with self._backend.write() as connection:
            query = sinks.delete().where(sinks.c.id == sink_id, sinks.c.team_id == team_id)
            expect_one(connection.execute(query), "sink", sink_id)
            cancel_all(connection, Kind.SINK, sink_id, self._backend.now(connection))

    def insert_transfer(self, transfer: Transfer) -> Transfer:
        values = _transfer_values(transfer) | {
            "team_id": transfer.team_id,
            "created_at": to_micros(transfer.created_at),
            "created_user_id": transfer.created_user_id,
            "schedule_fired_at": to_micros_or_none(transfer.schedule_fired_at),
        }
        if transfer.id:
            values["id"] = transfer.id
        with named("transfer", transfer.name), self._backend.write() as connection:
            query = transfers.insert().values(values).returning(transfers)
            return _transfer(connection.execute(query).mappings().one())

    def list_transfers(self, team_id: int) -> tuple[Transfer, ...]:
        return self._transfers(transfers.c.team_id == team_id)

    def get_transfer(self, team_id: int, transfer_id: int) -> Transfer:
        query = sa.select(transfers).where(
            transfers.c.id == transfer_id, transfers.c.team_id == team_id
        )
        with self._backend.read() as connection:
            return _transfer(self._one(connection, query, "transfer", transfer_id))

    def update_transfer(
        self, transfer: Transfer, *, schedule_from: datetime | None = None
    ) -> Transfer:
        """All but when its schedule fired, unless it is another one from now on."""
        values = _transfer_values(transfer)
        if schedule_from is not None:
            values["schedule_fired_at"] = to_micros(schedule_from)
        query = (
            transfers.update()
            .where(transfers.c.id == transfer.id, transfers.c.team_id == transfer.team_id)
            .values(values)
        )
        with named("transfer", transfer.name), self._backend.write() as connection:
            expect_one(connection.execute(query), "transfer", transfer.id)
        return self.get_transfer(transfer.team_id, transfer.id)

    def delete_transfer(self, team_id: int, transfer_id: int) -> None:
        """Its active backfills are cancelled with it; they stay on record."""
        with self._backend.write() as connection:
            query = transfers.delete().where(
                transfers.c.id == transfer_id, transfers.c.team_id == team_id
            )
            expect_one(connection.execute(query), "transfer", transfer_id)
            cancel_all(connection, Kind.TRANSFER, str(transfer_id), self._backend.now(connection))

    def list_scheduled_transfers(self) -> tuple[Transfer, ...]:
        return self._transfers(transfers.c.scheduled.is_(True) & transfers.c.paused.is_(False))

    def mark_schedule_fired(
        self, transfer_id: int, fired_at: datetime, last: datetime | None
    ) -> bool:
        query = (
            transfers.update()
            .where(
                transfers.c.id == transfer_id,
                transfers.c.schedule_fired_at.is_not_distinct_from(to_micros_or_none(last)),
            )
            .values(schedule_fired_at=to_micros(fired_at))
        )
        with self._backend.write() as connection:
            return bool(connection.execute(query).rowcount)

    def _transfers(self, condition: Any) -> tuple[Transfer, ...]:
        query = sa.select(transfers).where(condition).order_by(transfers.c.id)
        with self._backend.read() as connection:
            return tuple(_transfer(row) for row in connection.execute(query).mappings())

    def _sink_values(self, sink: Sink) -> dict[str, Any]:
        return {
            "name": sink.name,
            "status": sink.status,
            "database_id": sink.database_id,
            "destination_type": sink.destination_type,
            "destination_options": self._seal(sink.destination_options, f"sink {sink.id}"),
            "definition": to_json({name: getattr(sink, name) for name in _SINK_DEFINITION}),
            "updated_at": to_micros(sink.updated_at),
        }

    def _sink(self, row: sa.RowMapping) -> Sink:
        definition = from_json(row["definition"])
        return Sink(
            id=row["id"],
            team_id=row["team_id"],
            name=row["name"],
            status=row["status"],
            database_id=row["database_id"],
            destination_type=row["destination_type"],
            destination_options=self._open(row["destination_options"], f"sink {row['id']}"),
            created_at=to_datetime(row["created_at"]),
            updated_at=to_datetime(row["updated_at"]),
            **_SINK_BEFORE
            | definition
            | {
                "selection": Selection.model_validate(definition["selection"]),
                "tables": _TABLES.validate_python(definition["tables"]),
                "actions": tuple(definition["actions"]),
                "filter": _FILTER.validate_python(definition["filter"]),
            },
        )


def _transfer_values(transfer: Transfer) -> dict[str, Any]:
    return {
        "name": transfer.name,
        "database_id": transfer.database_id,
        "destination_id": transfer.destination_id,
        "destination_table": transfer.destination_table,
        "definition": to_json({name: getattr(transfer, name) for name in _TRANSFER_DEFINITION}),
        "scheduled": bool(transfer.schedule),
        "paused": transfer.paused,
        "updated_at": to_micros(transfer.updated_at),
    }


def _transfer(row: Any) -> Transfer:
    definition = from_json(row["definition"])
    return Transfer(
        id=row["id"],
        team_id=row["team_id"],
        name=row["name"],
        database_id=row["database_id"],
        destination_id=row["destination_id"],
        destination_table=row["destination_table"],
        paused=row["paused"],
        created_at=to_datetime(row["created_at"]),
        created_user_id=row["created_user_id"],
        updated_at=to_datetime(row["updated_at"]),
        schedule_fired_at=to_datetime_or_none(row["schedule_fired_at"]),
        **definition
        | {
            "columns": tuple(definition["columns"]),
            "schedule": _SCHEDULE.validate_python(definition["schedule"]),
        },
    )
