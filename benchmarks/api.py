"""How soon refill answers: after its start, to a request, with the first slice of a backfill."""

import time
from collections.abc import Callable
from uuid import uuid4

from rich.console import Console

from benchmarks import report
from benchmarks.peers import Bench
from benchmarks.refill_server import RefillServer
from benchmarks.source import make_table
from refill.bootstrap import open_store
from refill.domain.pipeline import Kind
from refill.domain.spec import KeyedRead, SinkSpec
from refill.domain.table import Table
from refill.settings import Settings
from refill.store.records import NewBackfill
from tests.acceptance.serving import Serving

LISTED = 1000
# what nobody waits for, in milliseconds; a good machine takes half of it
LIMITS = {
    "the first answer after a start, `refill api`": 2000,
    "the first answer after a start, `refill serve`": 2000,
    "an answer of `/health`": 30,
    "a backfill created": 50,
    f"{LISTED} backfills listed": 100,
    "the first slice begun, of a backfill just created": 1000,
}

console = Console()


def run(bench: Bench, refill: RefillServer) -> bool:
    make_table(bench.url, 100_000)
    starts = [_start(bench, command) for command in ("api", "serve")]
    found = [*starts, _health(refill), _create(refill), _list(refill), _first_slice(refill)]
    measured = dict(zip(LIMITS, found, strict=True))
    for what, milliseconds in measured.items():
        console.print(f"{what}: {milliseconds:,.1f} ms")
    met = report.show_bars(
        [
            (f"{LIMITS[what]} ms : {what}", LIMITS[what] / ms, 1.0, 2.0)
            for what, ms in measured.items()
        ]
    )
    report.save("api", {}, milliseconds=measured)
    return met


def _best(call: Callable[[int], object], tries: int) -> float:
    """In milliseconds: other programs run too."""
    spent = []
    for number in range(tries):
        began = time.perf_counter()
        call(number)
        spent.append((time.perf_counter() - began) * 1000)
    return min(spent)


def _start(bench: Bench, command: str) -> float:
    """Each on an empty home."""
    servers = [Serving(bench.scratch / f"{command}-{number}", command) for number in range(3)]
    try:
        return _best(lambda number: servers[number].start(), len(servers))
    finally:
        for server in servers:
            server.close()


def _health(refill: RefillServer) -> float:
    return _best(lambda _: refill.call("GET", "/health"), 20)


def _create(refill: RefillServer) -> float:
    names = [f"created-{number}" for number in range(10)]
    for name in names:
        _add_held_sink(refill, name)
    return _best(lambda number: refill.call("POST", f"/api/sinks/{names[number]}/backfills"), 10)


def _list(refill: RefillServer) -> float:
    sink = _add_held_sink(refill, "listed")
    spec = SinkSpec(
        database_id=str(uuid4()),
        database_type="postgres",
        database_name="bench",
        read=KeyedRead(table=Table(schema_name="public", name="t", columns=())),
        sink_type="files",
        sink_options={},
        sink_id=sink,
    )
    store = open_store(Settings(home=refill.home))
    for number in range(LISTED):
        table = f"public.t{number}"
        store.insert_backfill(
            NewBackfill(
                uid=str(uuid4()),
                team_id=1,
                kind=Kind.SINK,
                pipeline_id=sink,
                pipeline_name="listed",
                spec=spec,
                holds=(table,),
            )
        )
    store.close()
    path = "/api/sinks/listed/backfills"
    if len(refill.call("GET", path)["data"]) != LISTED:
        raise RuntimeError("not all backfills are listed")
    return _best(lambda _: refill.call("GET", path), 10)


def _add_held_sink(refill: RefillServer, name: str) -> str:
    """Paused: what is created for it waits, and no worker is in the way of what is measured."""
    refill.add_sink(name, "orders", {"type": "files", "path": name, "format": "parquet"})
    changed = refill.call("PUT", f"/api/sinks/{name}", status="paused")
    return str(changed["id"])


def _first_slice(refill: RefillServer) -> float:
    """With a worker that is warm."""
    refill.add_sink("first", "orders", {"type": "files", "path": "first", "format": "parquet"})
    refill.backfill("first")
    waits = []
    for _ in range(3):
        began = time.perf_counter()
        made = refill.call("POST", "/api/sinks/first/backfills")
        path = f"/api/sinks/first/backfills/{made['id']}"
        while True:
            found = refill.call("GET", path)
            if found["slices"]["running"] or found["slices"]["completed"]:
                break
        waits.append((time.perf_counter() - began) * 1000)
        while found["state"] != "completed":
            time.sleep(0.05)
            found = refill.call("GET", path)
    return min(waits)
