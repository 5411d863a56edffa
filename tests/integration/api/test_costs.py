"""What a request costs, counted: statements at the store, and what has to be loaded for it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx

from refill.domain.pipeline import Kind
from refill.domain.table import Table
from refill.service.identity import new_uid
from refill.store.records import NewBackfill
from tests.integration.api.running import Running, answer
from tests.specs import build_spec
from tests.statements import counted

HEAVY = ("pyspark", "pyarrow", "polars", "pandas", "adbc_driver_manager", "psycopg", "sqlglot")


def statements(server: Running, call: Callable[[], object]) -> int:
    with counted(server.store) as seen:
        call()
    return len(seen)


def add_backfills(server: Running, sink: dict[str, str], count: int) -> None:
    spec = build_spec(
        kind=Kind.SINK,
        database_id=sink["id"],
        database_type="postgres",
        database_name="d",
        table=Table(schema_name="public", name="orders", columns=()),
        sink_type="files",
        sink_options={},
    )
    for _ in range(count):
        table = f"public.{server.name('t')}"
        server.store.insert_backfill(
            NewBackfill(
                uid=new_uid(),
                team_id=1,
                kind=Kind.SINK,
                pipeline_id=sink["id"],
                pipeline_name=sink["name"],
                spec=spec,
                holds=(table,),
            )
        )


def test_a_backfill_is_created_with_a_few_statements(server: Running, api: httpx.Client) -> None:
    sink = server.make_sink(api)
    add_backfills(server, sink, 50)
    path = f"/api/sinks/{sink['id']}/backfills"
    assert statements(server, lambda: answer(api.post(path), 200)) <= 16


def test_many_backfills_are_listed_with_the_statements_of_one(
    server: Running, api: httpx.Client
) -> None:
    sink = server.make_sink(api)
    path = f"/api/sinks/{sink['id']}/backfills"
    add_backfills(server, sink, 1)
    alone = min(statements(server, lambda: api.get(path)) for _ in range(3))
    add_backfills(server, sink, 99)
    assert len(answer(api.get(path), 200)["data"]) == 100
    # the least: what the server asks in the background comes on top
    assert min(statements(server, lambda: api.get(path)) for _ in range(3)) == alone


def test_the_api_starts_without_what_only_the_worker_needs(tmp_path: Path) -> None:
    """Loading it takes longer than all the rest of the start."""
    script = (
        "import sys\n"
        "from refill.bootstrap import make_app, open_store\n"
        "from refill.settings import Settings\n"
        f"settings = Settings(home={str(tmp_path)!r})\n"
        "make_app(settings, open_store(settings))\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
