"""The demo's sink and transfer, made through the public APIs as any client would."""

from dataclasses import dataclass

from refill.cli.client import Client
from refill.cli.demo.history import History

SINK = "orders-to-parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipelines:
    sink: str
    transfer: int


def make_pipelines(client: Client, postgres_port: int) -> Pipelines:
    client.post(
        "/api/postgres_databases",
        {
            "name": "shop",
            "hostname": "127.0.0.1",
            "port": postgres_port,
            "database": "shop",
            "username": "postgres",
            "password": "postgres",
            "ssl": False,
        },
    )
    client.post(
        "/api/sinks",
        {
            "name": SINK,
            "database": "shop",
            "source": {"include_tables": ["public.orders"]},
            "destination": {"type": "files", "path": "orders", "format": "parquet"},
        },
    )
    team = f"/v1/teams/{client.team}"
    destination = client.post(
        f"{team}/destinations",
        {
            "type": "files",
            "display_name": "lake",
            "auth_method": "none",
            "fields": {"path": "lake", "format": "parquet"},
        },
    )["data"]["id"]
    transfer = client.post(
        f"{team}/transfers",
        {
            "display_name": "visits by date",
            "data_source_id": "shop",
            "destination_id": destination,
            "data_source_settings": [
                {"field_id": "table", "value": "public.visits"},
                {"field_id": "date_column", "value": "visited_on"},
                {"field_id": "destination_table", "value": "visits"},
            ],
        },
    )["data"]["transfer_id"]
    return Pipelines(sink=SINK, transfer=int(transfer))


def start_backfills(client: Client, pipelines: Pipelines, history: History) -> tuple[str, str]:
    """(id of the sink's backfill, id of the transfer's)."""
    of_sink = client.post(f"/api/sinks/{pipelines.sink}/backfills", {"table": "public.orders"})
    path = f"/v1/teams/{client.team}/transfers/{pipelines.transfer}/backfills"
    span = {"range_start": str(history.first_date), "range_end": str(history.last_date)}
    of_transfer = client.post(path, span)["data"]
    return str(of_sink["id"]), str(of_transfer["transfer_backfill_id"])
