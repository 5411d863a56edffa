"""refill as its users have it: `refill serve`, and everything through its own HTTP API."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.servers.postgres import free_port

TERMINAL = {"completed", "failed", "cancelled"}


@dataclass(frozen=True)
class RefillServer:
    client: httpx.Client
    home: Path
    pid: int

    def call(self, method: str, path: str, **body: Any) -> Any:
        answer = self.client.request(method, path, json=body or None)
        if answer.is_error:
            raise RuntimeError(f"{method} {path} answered {answer.status_code}: {answer.text}")
        return answer.json() if answer.content else None

    def add_database(self, name: str, url: str) -> None:
        self.call("POST", "/api/postgres_databases", name=name, url=url)

    def add_sink(self, name: str, table: str, destination: Mapping[str, Any]) -> None:
        self.call(
            "POST",
            "/api/sinks",
            name=name,
            database="bench",
            source={"include_tables": [table]},
            tables=[{"name": table}],
            destination=dict(destination),
        )

    def backfill(self, sink: str) -> dict[str, Any]:
        """From create to completed; raises unless it completed."""
        created = self.call("POST", f"/api/sinks/{sink}/backfills")
        while True:
            path = f"/api/sinks/{sink}/backfills/{created['id']}"
            found: dict[str, Any] = self.call("GET", path)
            if found["state"] in TERMINAL:
                break
            time.sleep(0.05)
        if found["state"] != "completed":
            raise RuntimeError(f"backfill of {sink} ended {found['state']}: {found['error']}")
        return found

    def backfill_dates(self, transfer: int, start: str, end: str) -> dict[str, Any]:
        path = f"/v1/teams/1/transfers/{transfer}/backfills"
        made = self.call("POST", path, range_start=start, range_end=end)["data"]
        while True:
            path = f"/v1/teams/1/backfills/{made['transfer_backfill_id']}"
            found: dict[str, Any] = self.call("GET", path)["data"]
            if found["status"].lower() in TERMINAL:
                break
            time.sleep(0.05)
        if found["status"] != "COMPLETED":
            raise RuntimeError(f"backfill ended {found['status']}: {found['error_report'][:2]}")
        return found


@contextmanager
def refill_server(scratch: Path, **settings: str) -> Iterator[RefillServer]:
    home = scratch / "home"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    port = free_port()
    environment = os.environ | {"REFILL_HOME": str(home), "REFILL_PORT": str(port)}
    environment |= {f"REFILL_{name.upper()}": value for name, value in settings.items()}
    refill = [sys.executable, "-m", "refill.cli"]
    subprocess.run([*refill, "migrate"], env=environment, check=True, capture_output=True)
    made = subprocess.run(
        [*refill, "keys", "create", "--team", "1", "--scope", "all", "--json"],
        env=environment,
        check=True,
        capture_output=True,
    )
    key = json.loads(made.stdout)["key"]
    log = (scratch / "server.log").open("w")
    process = subprocess.Popen([*refill, "serve"], env=environment, stdout=log, stderr=log)
    client = httpx.Client(
        base_url=f"http://127.0.0.1:{port}",
        headers={"Authorization": f"Bearer {key}"},
        timeout=30,
    )
    try:
        _await_health(client, process)
        yield RefillServer(client, home, process.pid)
    finally:
        process.terminate()
        process.wait(60)
        client.close()
        log.close()


def _await_health(client: httpx.Client, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"refill serve ended with {process.returncode}")
        try:
            if client.get("/health").is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise RuntimeError("refill serve did not answer")


def postgres_fields(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    return {
        "hostname": parts.hostname,
        "port": parts.port,
        "database": parts.path.lstrip("/"),
        "username": parts.username,
        "password": parts.password,
    }
