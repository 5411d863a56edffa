"""The demo from beginning to end: start, make, backfill, watch, compare."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import psycopg
from pydantic import SecretStr

from refill.cli.client import connect
from refill.cli.demo.history import write_history
from refill.cli.demo.pipelines import make_pipelines, start_backfills
from refill.cli.demo.postgres import running
from refill.cli.demo.server import DemoServer
from refill.cli.demo.stage import Stage
from refill.cli.demo.verdict import Line, compare
from refill.cli.local import write_private
from refill.cli.remote import RemoteBackfills
from refill.cli.view import View
from refill.settings import ClientSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    rows: int
    days: int
    per_day: int
    today: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    url: str
    seconds: float
    backfills: tuple[View, ...]
    lines: tuple[Line, ...]
    server: DemoServer

    @property
    def equal(self) -> bool:
        done = all(view.state == "completed" for view in self.backfills)
        return done and all(line.equal for line in self.lines)

    def as_record(self) -> Mapping[str, Any]:
        return {
            "equal": self.equal,
            "url": self.url,
            "seconds": round(self.seconds, 1),
            "counts": [
                {
                    "what": line.what,
                    "source": line.source,
                    "destination": line.destination,
                    "equal": line.equal,
                }
                for line in self.lines
            ],
            "backfills": [dict(view.raw) for view in self.backfills],
        }


def run_demo(root: Path, scale: Scale, stage: Stage, stack: ExitStack, port: int) -> Outcome:
    """What it started is left running, and stops with the stack."""
    stage.open()
    with stage.step("PostgreSQL, out of a Python wheel") as step:
        postgres = stack.enter_context(running(root))
        step.say(f"{postgres.version} on port {postgres.port}")
    # started now, so that Spark warms up while the tables are written
    server = DemoServer(root, port)
    stack.callback(server.stop)
    with stage.step("A history to re-read") as step:
        _make_database(postgres.url())
        history = write_history(
            postgres.url("shop"),
            rows=scale.rows,
            days=scale.days,
            per_day=scale.per_day,
            today=scale.today,
        )
        step.say(f"{history.orders:,} orders, {len(history.visits_per_date)} dates")
    with stage.step("refill serve") as step:
        url, key = server.greeting()
        step.say(url)
    settings = ClientSettings(url=url, api_key=SecretStr(key), team=1)
    client = stack.enter_context(connect(settings))
    with stage.step("Sink and transfer, by the public APIs") as step:
        pipelines = make_pipelines(client, postgres.port)
        step.say(f"sink {pipelines.sink}, transfer {pipelines.transfer}")
    _write_env(root / "env", url, key, pipelines.sink, pipelines.transfer)

    ids = start_backfills(client, pipelines, history)
    backfills = RemoteBackfills(client)
    views, seconds = stage.watch(lambda: [backfills.show(each) for each in ids])

    lines = compare(history, server.files / "1")
    outcome = Outcome(
        url=url, seconds=seconds, backfills=tuple(views), lines=tuple(lines), server=server
    )
    stage.conclude(lines, outcome.equal, seconds, history.orders + history.visits)
    return outcome


def _make_database(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = 'shop'").fetchone()
        if found is None:
            connection.execute("CREATE DATABASE shop")


def _write_env(path: Path, url: str, key: str, sink: str, transfer: int) -> None:
    values = {
        "REFILL_URL": url,
        "REFILL_API_KEY": key,
        "TEAM": 1,
        "SINK": sink,
        "TRANSFER": transfer,
    }
    write_private(path, "".join(f"export {name}={value}\n" for name, value in values.items()))
