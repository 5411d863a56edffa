"""Databases, HTTP endpoints and destinations: what pipelines connect. Secrets are encrypted."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from refill.domain.errors import NotFound
from refill.domain.pipeline import Database, Destination, HttpEndpoint
from refill.domain.table import Table
from refill.store.part import Part
from refill.store.records import StoredCatalogue
from refill.store.rows import (
    from_json,
    tables_of,
    tables_to_json,
    to_datetime,
    to_datetime_or_none,
    to_json,
    to_micros,
)
from refill.store.tables import databases, destinations, endpoints
from refill.store.violations import named, unused

_DATABASE = [column for column in databases.c if column.name != "catalogue"]


class Connections(Part):
    def insert_database(self, database: Database) -> Database:
        values = self._database_values(database) | {
            "id": database.id,
            "team_id": database.team_id,
            "created_at": to_micros(database.created_at),
            "catalogue": tables_to_json(()),
        }
        with named("database", database.name), self._backend.write() as connection:
            connection.execute(databases.insert().values(values))
        return self.get_database(database.team_id, database.id)

    def list_databases(self, team_id: int) -> tuple[Database, ...]:
        query = sa.select(*_DATABASE).where(databases.c.team_id == team_id)
        with self._backend.read() as connection:
            rows = connection.execute(query.order_by(databases.c.created_at, databases.c.id))
            return tuple(self._database(row) for row in rows.mappings())

    def get_database(self, team_id: int, id_or_name: str) -> Database:
        with self._backend.read() as connection:
            query = by_id_or_name(databases, team_id, id_or_name).with_only_columns(*_DATABASE)
            return self._database(self._one(connection, query, "database", id_or_name))

    def update_database(self, database: Database) -> Database:
        query = (
            databases.update()
            .where(databases.c.id == database.id, databases.c.team_id == database.team_id)
            .values(self._database_values(database))
        )
        with named("database", database.name), self._backend.write() as connection:
            expect_one(connection.execute(query), "database", database.id)
        return self.get_database(database.team_id, database.id)

    def get_catalogue(self, database_id: str) -> StoredCatalogue:
        query = sa.select(databases.c.catalogue, databases.c.catalogue_at).where(
            databases.c.id == database_id
        )
        with self._backend.read() as connection:
            row = self._one(connection, query, "database", database_id)
        return StoredCatalogue(
            tables=tables_of(row["catalogue"]), at=to_datetime_or_none(row["catalogue_at"])
        )

    def save_catalogue(self, database_id: str, tables: Sequence[Table], at: datetime) -> None:
        query = (
            databases.update()
            .where(databases.c.id == database_id)
            .values(
                catalogue=tables_to_json(tables),
                catalogue_at=to_micros(at),
                tables_count=len(tables),
            )
        )
        with self._backend.write() as connection:
            expect_one(connection.execute(query), "database", database_id)

    def delete_database(self, team_id: int, database_id: str) -> None:
        message = "Sinks or transfers read from this database: delete them first."
        with unused(message), self._backend.write() as connection:
            query = databases.delete().where(
                databases.c.id == database_id, databases.c.team_id == team_id
            )
            expect_one(connection.execute(query), "database", database_id)

    def insert_endpoint(self, endpoint: HttpEndpoint) -> HttpEndpoint:
        values = self._endpoint_values(endpoint) | {
            "id": endpoint.id,
            "team_id": endpoint.team_id,
            "created_at": to_micros(endpoint.created_at),
        }
        with named("HTTP endpoint", endpoint.name), self._backend.write() as connection:
            connection.execute(endpoints.insert().values(values))
        return endpoint

    def list_endpoints(self, team_id: int) -> tuple[HttpEndpoint, ...]:
        query = sa.select(endpoints).where(endpoints.c.team_id == team_id)
        with self._backend.read() as connection:
            rows = connection.execute(query.order_by(endpoints.c.created_at, endpoints.c.id))
            return tuple(self._endpoint(row) for row in rows.mappings())

    def get_endpoint(self, team_id: int, id_or_name: str) -> HttpEndpoint:
        with self._backend.read() as connection:
            query = by_id_or_name(endpoints, team_id, id_or_name)
            return self._endpoint(self._one(connection, query, "http_endpoint", id_or_name))

    def update_endpoint(self, endpoint: HttpEndpoint) -> HttpEndpoint:
        query = (
            endpoints.update()
            .where(endpoints.c.id == endpoint.id, endpoints.c.team_id == endpoint.team_id)
            .values(self._endpoint_values(endpoint))
        )
        with named("HTTP endpoint", endpoint.name), self._backend.write() as connection:
            expect_one(connection.execute(query), "http_endpoint", endpoint.id)
        return self.get_endpoint(endpoint.team_id, endpoint.id)

    def delete_endpoint(self, team_id: int, endpoint_id: str) -> None:
        with self._backend.write() as connection:
            query = endpoints.delete().where(
                endpoints.c.id == endpoint_id, endpoints.c.team_id == team_id
            )
            expect_one(connection.execute(query), "http_endpoint", endpoint_id)

    def insert_destination(self, destination: Destination) -> Destination:
        values = {
            "team_id": destination.team_id,
            "name": destination.name,
            "type": destination.type,
            "auth_method": destination.auth_method,
            "options": "",
            "created_at": to_micros(destination.created_at),
            "updated_at": to_micros(destination.updated_at),
        }
        if destination.id:
            values["id"] = destination.id
        with named("destination", destination.name), self._backend.write() as connection:
            query = destinations.insert().values(values).returning(destinations.c.id)
            given = connection.execute(query).scalar_one()
            # in two steps: what is sealed is bound to the id
            sealed = self._seal(destination.options, f"destination {given}")
            connection.execute(
                destinations.update().where(destinations.c.id == given).values(options=sealed)
            )
        return self.get_destination(destination.team_id, given)

    def list_destinations(self, team_id: int) -> tuple[Destination, ...]:
        query = sa.select(destinations).where(destinations.c.team_id == team_id)
        with self._backend.read() as connection:
            rows = connection.execute(query.order_by(destinations.c.id)).mappings()
            return tuple(self._destination(row) for row in rows)

    def get_destination(self, team_id: int, destination_id: int) -> Destination:
        query = sa.select(destinations).where(
            destinations.c.id == destination_id, destinations.c.team_id == team_id
        )
        with self._backend.read() as connection:
            return self._destination(self._one(connection, query, "destination", destination_id))

    def update_destination(self, destination: Destination) -> Destination:
        query = (
            destinations.update()
            .where(
                destinations.c.id == destination.id, destinations.c.team_id == destination.team_id
            )
            .values(
                name=destination.name,
                type=destination.type,
                auth_method=destination.auth_method,
                options=self._seal(destination.options, f"destination {destination.id}"),
                updated_at=to_micros(destination.updated_at),
            )
        )
        with named("destination", destination.name), self._backend.write() as connection:
            expect_one(connection.execute(query), "destination", destination.id)
        return self.get_destination(destination.team_id, destination.id)

    def delete_destination(self, team_id: int, destination_id: int) -> None:
        message = "Transfers write to this destination: delete them first."
        with unused(message), self._backend.write() as connection:
            query = destinations.delete().where(
                destinations.c.id == destination_id, destinations.c.team_id == team_id
            )
            expect_one(connection.execute(query), "destination", destination_id)

    def _seal(self, value: Any, bound_to: str) -> str:
        return self._cipher.seal(to_json(value), bound_to)

    def _open(self, sealed: str, bound_to: str) -> Any:
        return from_json(self._cipher.open(sealed, bound_to))

    def _database_values(self, database: Database) -> dict[str, Any]:
        return {
            "name": database.name,
            "type": database.type,
            "options": self._seal(database.options, f"database {database.id}"),
            "annotations": to_json(database.annotations),
            "replication_slots": to_json(database.replication_slots),
            "extra": self._seal(database.extra, _extra(database.id)) if database.extra else "",
            "updated_at": to_micros(database.updated_at),
        }

    def _database(self, row: sa.RowMapping) -> Database:
        return Database(
            id=row["id"],
            team_id=row["team_id"],
            name=row["name"],
            type=row["type"],
            options=self._open(row["options"], f"database {row['id']}"),
            annotations=from_json(row["annotations"]),
            replication_slots=tuple(from_json(row["replication_slots"])),
            extra=self._open(row["extra"], _extra(row["id"])) if row["extra"] else {},
            tables_count=row["tables_count"],
            catalogue_at=to_datetime_or_none(row["catalogue_at"]),
            created_at=to_datetime(row["created_at"]),
            updated_at=to_datetime(row["updated_at"]),
        )

    def _endpoint_values(self, endpoint: HttpEndpoint) -> dict[str, Any]:
        sealed = self._seal(endpoint.encrypted_headers, f"HTTP endpoint {endpoint.id}")
        return {
            "name": endpoint.name,
            "url": endpoint.url,
            "headers": to_json(endpoint.headers),
            "encrypted_headers": sealed,
            "updated_at": to_micros(endpoint.updated_at),
        }

    def _endpoint(self, row: sa.RowMapping) -> HttpEndpoint:
        return HttpEndpoint(
            id=row["id"],
            team_id=row["team_id"],
            name=row["name"],
            url=row["url"],
            headers=from_json(row["headers"]),
            encrypted_headers=self._open(row["encrypted_headers"], f"HTTP endpoint {row['id']}"),
            created_at=to_datetime(row["created_at"]),
            updated_at=to_datetime(row["updated_at"]),
        )

    def _destination(self, row: sa.RowMapping) -> Destination:
        return Destination(
            id=row["id"],
            team_id=row["team_id"],
            name=row["name"],
            type=row["type"],
            auth_method=row["auth_method"],
            options=self._open(row["options"], f"destination {row['id']}"),
            created_at=to_datetime(row["created_at"]),
            updated_at=to_datetime(row["updated_at"]),
        )


def _extra(database_id: str) -> str:
    """What the seal is bound to, so that it cannot stand in for the options'."""
    return f"database {database_id} extra"


def by_id_or_name(table: sa.Table, team_id: int, id_or_name: str) -> Any:
    """An id, in whatever case, goes before a name that happens to look like it."""
    is_id = table.c.id == id_or_name.lower()
    return (
        sa.select(table)
        .where(table.c.team_id == team_id, sa.or_(is_id, table.c.name == id_or_name))
        .order_by(sa.case((is_id, 0), else_=1))
        .limit(1)
    )


def expect_one(result: sa.CursorResult[Any], kind: str, identity: object) -> None:
    if result.rowcount != 1:
        raise NotFound(kind, identity)
