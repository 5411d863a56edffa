"""A running server over a fresh SQLite store, and a stand-in for the worker's side of it."""

import re
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from refill.api.app import create_app
from refill.bootstrap import open_store
from refill.clock import Clock
from refill.connectors.kit.contract import Connector
from refill.connectors.kit.registry import load_connectors
from refill.domain.access import Role, Scope
from refill.domain.backfill import Backfill
from refill.domain.pipeline import Database
from refill.domain.retry import RetryPolicy
from refill.domain.slice import Dated, Fault, Outcome, Receipt, Reject
from refill.domain.table import Table
from refill.service import Service
from refill.service.identity import new_uid
from refill.settings import Settings
from refill.store.port import Store
from refill.store.records import PackLimits, PlannedSlice
from tests.servers.postgres import free_port
from tests.specs import pg_column

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")

ORDERS = Table(
    schema_name="public",
    name="orders",
    columns=(
        pg_column(name="id", type="bigint", oid=20, not_null=True),
        pg_column(name="day", type="date", oid=1082),
        pg_column(name="at", type="timestamp with time zone", oid=1184),
        pg_column(name="amount", type="numeric(12,2)", oid=1700),
        pg_column(name="note", type="text", oid=25),
    ),
    primary_key=("id",),
)
SETTINGS = {"table": "orders", "date_column": "day"}
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
FAR_AHEAD = datetime(2100, 1, 1, tzinfo=UTC)


@dataclass
class Stage:
    """The server, its store, and ways to make what a test needs."""

    url: str  # with /v1
    store: Store
    service: Service
    team_id: int
    token: str
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def client(self, token: str | None = None) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token or self.token}"}
        base = f"{self.url}/teams/{self.team_id}"
        # the first use of a driver loads it, which takes seconds on a busy machine; certificates
        # are not needed here, and cost more to load than a request
        return httpx.Client(base_url=base, headers=headers, timeout=60, verify=False)

    def make_token(
        self,
        *scopes: Scope,
        team_id: int | None = None,
        role: Role = Role.OWNER,
        expires_at: datetime | None = None,
    ) -> str:
        team = team_id or self.team_id
        user = self.store.create_user(team, f"user {next(self._numbers)}", role)
        minted = self.service.access.mint_key(
            team_id=team, user_id=user.id, scopes=scopes or (Scope.ALL,), expires_at=expires_at
        )
        return minted.token

    def make_database(
        self, options: Mapping[str, Any] | None = None, *, tables: tuple[Table, ...] = (ORDERS,)
    ) -> Database:
        """By default one that nobody answers at, whose catalogue is known."""
        now = datetime.now(UTC)
        nobody = {
            "hostname": "127.0.0.1",
            "port": free_port(),
            "database": "shop",
            "username": "reader",
            "password": "secret",
        }
        made = self.store.insert_database(
            Database(
                id=new_uid(),
                team_id=self.team_id,
                name=f"shop-{next(self._numbers)}",
                type="postgres",
                options=dict(options or nobody),
                created_at=now,
                updated_at=now,
            )
        )
        if tables:
            self.store.save_catalogue(made.id, tables, now)
        return made

    def make_destination(self, **changes: Any) -> int:
        number = next(self._numbers)
        body = {
            "type": "files",
            "display_name": f"lake {number}",
            "fields": {"path": f"lake-{number}", "format": "parquet"},
            **changes,
        }
        with self.client() as client:
            return int(answer(client.post("/destinations", json=body), 201)["data"]["id"])

    def transfer_body(self, **changes: Any) -> dict[str, Any]:
        settings = changes.pop("settings", SETTINGS)
        return {
            "display_name": f"orders {next(self._numbers)}",
            "data_source_id": changes.pop("data_source_id", None) or self.make_database().name,
            "destination_id": changes.pop("destination_id", None) or self.make_destination(),
            "schedule": [],
            "accounts": [],
            "data_source_settings": [
                {"field_id": name, "value": value} for name, value in settings.items()
            ],
            **changes,
        }

    def make_transfer(self, **changes: Any) -> int:
        with self.client() as client:
            made = client.post("/transfers", json=self.transfer_body(**changes))
            return int(answer(made, 201)["data"]["transfer_id"])

    def make_backfill(
        self, transfer_id: int, start: str = "2024-01-01", end: str = "2024-01-05", **more: Any
    ) -> dict[str, Any]:
        body = {"range_start": start, "range_end": end, **more}
        with self.client() as client:
            made = client.post(f"/transfers/{transfer_id}/backfills", json=body)
            data: dict[str, Any] = answer(made, 200)["data"]
            return data

    def plan(self) -> Backfill:
        """Plans the oldest backfill that is to be planned."""
        claim = self.store.claim_plan("test", 60)
        assert claim is not None
        spec = claim.backfill.spec
        slices = [
            PlannedSlice(
                extent=Dated(date=day),
                target=f"destination:{spec.destination_id}/{spec.destination_table}/{day}",
            )
            for day in spec.dates
        ]
        return self.store.save_plan(claim, slices, rows_estimated=0)

    def fail_plan(self, message: str) -> Backfill:
        claim = self.store.claim_plan("test", 60)
        assert claim is not None
        fault = Fault(code="source_refused", message=message, transient=False)
        return self.store.end_claim(claim, fault, RetryPolicy())

    def run(
        self,
        *,
        fail: Collection[date] = (),
        rows: int = 10,
        error: str = "No.",
        rejects: tuple[Reject, ...] = (),
    ) -> list[date]:
        """Runs whatever is pending, as the worker would; returns the dates in their order."""
        ran = []
        while pack := self.store.claim_pack("test", PackLimits(), 60):
            receipts = []
            for claimed in pack.slices:
                extent = claimed.slice.extent
                assert isinstance(extent, Dated)
                ran.append(extent.date)
                receipts.append(
                    Receipt(
                        slice_id=claimed.slice.id,
                        attempt=claimed.slice.attempt,
                        outcome=Outcome.FAILED if extent.date in fail else Outcome.DONE,
                        rows_read=0 if extent.date in fail else rows,
                        rows_delivered=0 if extent.date in fail else rows - len(rejects),
                        rows_rejected=len(rejects),
                        rejects=rejects,
                        seconds=0.5,
                        fault=Fault(code="sink_refused", message=error, transient=False)
                        if extent.date in fail
                        else None,
                    )
                )
            self.store.finish_slices(pack.backfill.id, receipts, RetryPolicy())
        while seal := self.store.claim_seal("test", 60):
            self.store.end_claim(seal, None, RetryPolicy())
        return ran

    def plan_and_run(self, **options: Any) -> list[date]:
        self.plan()
        return self.run(**options)


def problems(api: httpx.Client, body: dict[str, Any]) -> dict[str, str]:
    """field → code, of both what is validated and what creating refuses."""
    found = answer(api.post("/transfers/validations", json=body))
    assert found["is_valid"] is not bool(found["errors"])
    created = api.post("/transfers", json=body)
    if found["is_valid"]:
        answer(created, 201)
    else:
        refused = answer(created, 422)
        assert refused["error"]["code"] == "UNPROCESSABLE_ENTITY"
        assert found["errors"][0]["field_id"] in refused["error"]["description"]
    return {item["field_id"]: item["error_code"] for item in found["errors"]}


def answer(response: httpx.Response, status: int = 200) -> Any:
    assert response.status_code == status, response.text
    return response.json()


def days(*texts: str) -> Sequence[date]:
    return [date.fromisoformat(text) for text in texts]


@contextmanager
def running_stage(
    home: Path,
    *,
    clock: Clock = lambda: datetime.now(UTC),
    brought: Sequence[Connector] = (),
    **changes: Any,
) -> Iterator[Stage]:
    """Starts uvicorn in a thread on a free port, and stops it in the end. `brought`: connectors
    beside our own."""
    settings = Settings(home=home, **changes)
    store = open_store(settings)
    connectors = {**load_connectors(), **{each.type: each for each in brought}}
    service = Service(store=store, connectors=connectors, settings=settings, clock=clock)
    app = create_app(service, settings, clock)
    port = free_port()
    server = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=port, log_config=None, ws="none")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started:
        assert thread.is_alive(), "the server died"
        assert time.monotonic() < deadline, "the server did not start"
        thread.join(0.01)
    minted = service.access.mint_key(team_id=1, user_id=1, scopes={Scope.ALL})
    try:
        yield Stage(
            url=f"http://127.0.0.1:{port}/v1",
            store=store,
            service=service,
            team_id=1,
            token=minted.token,
        )
    finally:
        server.should_exit = True
        thread.join(20)
        store.close()
