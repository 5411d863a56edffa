"""The real server over a fresh SQLite store, with keys for whoever a test needs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from refill.api.app import create_app
from refill.bootstrap import open_store
from refill.clock import Clock, system_clock
from refill.connectors.kit.registry import load_connectors
from refill.domain.access import Role, Scope
from refill.domain.retry import RetryPolicy
from refill.domain.slice import Fault, KeyRange, Outcome, Receipt, Reject
from refill.service import Service
from refill.settings import Settings
from refill.store.port import Store
from refill.store.records import PackLimits, PlannedSlice
from tests.servers.postgres import free_port
from tests.waiting import until

POLICY = RetryPolicy(max_failures=1)
NOBODY = {
    "hostname": "127.0.0.1",
    "port": free_port(),
    "database": "shop",
    "username": "reader",
    "password": "hush-hush",
}


@dataclass
class Running:
    """A server and ways to make what a test needs in it."""

    url: str
    app: FastAPI
    store: Store
    service: Service
    settings: Settings
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def name(self, stem: str) -> str:
        return f"{stem}-{next(self._numbers)}"

    def make_team(self) -> int:
        return self.store.create_team(self.name("team")).id

    def make_token(
        self,
        *scopes: Scope,
        team_id: int = 1,
        role: Role = Role.OWNER,
        expires_at: datetime | None = None,
    ) -> str:
        user = self.store.create_user(team_id, self.name("user"), role)
        minted = self.service.access.mint_key(
            team_id=team_id, user_id=user.id, scopes=scopes or (Scope.ALL,), expires_at=expires_at
        )
        return minted.token

    def client(self, token: str | None = None) -> httpx.Client:
        """One that may do everything, unless it is given another key."""
        headers = {"Authorization": f"Bearer {token or self.make_token()}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30)

    def make_database(self, api: httpx.Client, **changes: Any) -> dict[str, Any]:
        """By default one that nobody answers at."""
        where = changes if "url" in changes else {**NOBODY, "test": False}
        body = {"name": self.name("shop"), **where, **changes}
        return answer(api.post("/api/postgres_databases", json=body), 201)

    def make_sink(self, api: httpx.Client, **changes: Any) -> dict[str, Any]:
        body = {
            "name": self.name("sink"),
            "destination": {"type": "files", "path": self.name("out")},
            "source": {"include_tables": ["public.orders"]},
            **changes,
        }
        if "database" not in body:
            body["database"] = self.make_database(api)["name"]
        return answer(api.post("/api/sinks", json=body), 200)

    def make_backfill(self, api: httpx.Client, **changes: Any) -> tuple[str, dict[str, Any]]:
        """The path of the sink's backfills, and a backfill."""
        path = f"/api/sinks/{self.make_sink(api, **changes)['name']}/backfills"
        return path, answer(api.post(path), 200)

    def make_transfer_backfill(self, api: httpx.Client, database: str) -> dict[str, str]:
        """The ids of a destination, a transfer and a backfill, as paths name them."""
        destination = answer(
            api.post(
                "/v1/teams/1/destinations",
                json={
                    "type": "files",
                    "display_name": self.name("lake"),
                    "fields": {"path": self.name("lake")},
                },
            ),
            201,
        )["data"]
        settings = {"table": "public.orders", "date_column": "day", "destination_table": "orders"}
        transfer = answer(
            api.post(
                "/v1/teams/1/transfers",
                json={
                    "display_name": self.name("orders"),
                    "data_source_id": database,
                    "destination_id": destination["id"],
                    "data_source_settings": [
                        {"field_id": name, "value": value} for name, value in settings.items()
                    ],
                },
            ),
            201,
        )["data"]
        path = f"/v1/teams/1/transfers/{transfer['transfer_id']}/backfills"
        dates = {"range_start": "2024-01-01", "range_end": "2024-01-02"}
        backfill = answer(api.post(path, json=dates), 200)["data"]
        return {
            "destination_id": str(destination["id"]),
            "transfer_id": str(transfer["transfer_id"]),
            "backfill_id": str(backfill["transfer_backfill_id"]),
        }

    def plan(self, *slices: PlannedSlice, rows_estimated: int = 0) -> None:
        """What the worker does with every backfill that waits to be planned."""
        parts = slices or (PlannedSlice(extent=KeyRange(), target=self.name("target")),)
        while claim := self.store.claim_plan("tester", 30):
            self.store.save_plan(claim, parts, rows_estimated=rows_estimated)

    def run(
        self, *, fault: Fault | None = None, rows: int = 0, rejects: tuple[Reject, ...] = ()
    ) -> None:
        """What the worker does with every slice that waits."""
        while pack := self.store.claim_pack("tester", PackLimits(), 30):
            receipts = [
                Receipt(
                    slice_id=claimed.slice.id,
                    attempt=claimed.slice.attempt,
                    outcome=Outcome.FAILED if fault else Outcome.DONE,
                    rows_read=rows,
                    rows_delivered=rows - len(rejects),
                    rows_rejected=len(rejects),
                    rejects=rejects,
                    fault=fault,
                )
                for claimed in pack.slices
            ]
            self.store.finish_slices(pack.backfill.id, receipts, POLICY)
        while claim := self.store.claim_seal("tester", 30):
            self.store.end_claim(claim, None, POLICY)


def answer(response: httpx.Response, status: int) -> Any:
    assert response.status_code == status, f"{response.status_code}: {response.text}"
    return response.json()


@contextmanager
def running_server(home: Path, clock: Clock = system_clock, **changes: Any) -> Iterator[Running]:
    settings = Settings(home=home, **changes)
    store = open_store(settings)
    service = Service(store=store, connectors=load_connectors(), settings=settings, clock=clock)
    app = create_app(service, settings, clock)
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive(), "the server's start", 10, 0.005)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Running(f"http://127.0.0.1:{port}", app, store, service, settings)
    finally:
        server.should_exit = True
        thread.join(10)
        store.close()
