"""What is stored, as an entry of a file: answers without what only answers carry."""

from collections.abc import Callable
from typing import Any

from refill.api.config.entries import plain_settings, plain_sink
from refill.api.dialects.sinks.databases import show_database
from refill.api.dialects.sinks.endpoints import show_endpoint
from refill.api.dialects.sinks.sink_forms import show_sink
from refill.api.dialects.transfers.transfers import settings_of
from refill.domain.pipeline import Database, Destination, HttpEndpoint
from refill.service import Service
from refill.service.sinks import SinkView
from refill.service.transfer_views import ListedTransfer

_ANSWERS_ONLY = frozenset(
    {
        *("id", "inserted_at", "updated_at", "health", "active_backfills"),
        *("tables_count", "tables_refreshed_at", "use_local_tunnel", "replication_slots"),
    }
)


def showing(service: Service) -> Callable[[str, Any], dict[str, Any]]:
    by_kind: dict[str, Callable[[Service, Any], dict[str, Any]]] = {
        "database": _database,
        "http_endpoint": _endpoint,
        "sink": _sink,
        "destination": _destination,
        "transfer": _transfer,
    }
    return lambda kind, found: _entry(by_kind[kind](service, found))


def _entry(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in _ANSWERS_ONLY}


def _database(service: Service, database: Database) -> dict[str, Any]:
    form = show_database(service, database).model_dump(mode="json")
    for slot in form["replication_slots"][:1]:
        form["slot"] = {"name": slot["slot_name"]}
        form["publication"] = {"name": slot["publication_name"]}
    if form["primary"] is None:
        del form["primary"]
    return form


def _endpoint(service: Service, endpoint: HttpEndpoint) -> dict[str, Any]:
    return show_endpoint(endpoint).model_dump(mode="json")


def _sink(service: Service, view: SinkView) -> dict[str, Any]:
    return plain_sink(show_sink(service, view).model_dump(mode="json"))


def _destination(service: Service, destination: Destination) -> dict[str, Any]:
    fields = service.destinations.shown_options(destination)
    form: dict[str, Any] = {
        "name": destination.name,
        "type": destination.type,
        "fields": {name: value for name, value in fields.items() if value is not None},
    }
    if destination.auth_method is not None:
        form["auth_method"] = destination.auth_method
    return form


def _transfer(service: Service, listed: ListedTransfer) -> dict[str, Any]:
    transfer = listed.transfer
    return {
        "name": transfer.name,
        "database": listed.database.name,
        "destination": listed.destination.name,
        "settings": plain_settings({e.field_id: e.value for e in settings_of(transfer)}),
        "schedule": [each.model_dump(exclude_none=True) for each in transfer.schedule],
        "notification_recipients": transfer.extra.get("notification_recipients", []),
        "state": "paused" if transfer.paused else "active",
    }
