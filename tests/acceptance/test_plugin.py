"""A connector that somebody else's package brings: installed, used over the API, run on Spark."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest

from tests.acceptance.serving import Serving, run_refill
from tests.distributions import install_project, make_distribution
from tests.waiting import until

PLUGIN = Path(__file__).parent / "plugin"
ROWS = 60_000


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The PYTHONPATH with the plugin."""
    return install_project(PLUGIN, tmp_path_factory.mktemp("site"))


@pytest.fixture
def serving(tmp_path: Path, installed: str) -> Iterator[Serving]:
    server = Serving(tmp_path / "home", PYTHONPATH=installed)
    server.start()
    yield server
    server.close()


@pytest.fixture
def source(postgres_url: str) -> str:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE orders AS SELECT n::bigint AS id, md5(n::text) AS note"
            f" FROM generate_series(1, {ROWS}) AS n"
        )
        connection.execute("ALTER TABLE orders ADD PRIMARY KEY (id)")
        connection.execute("ANALYZE")
    return postgres_url


def make_sink(serving: Serving, url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    database = {
        "name": "shop",
        "hostname": parts.hostname,
        "port": parts.port,
        "database": parts.path.lstrip("/"),
        "username": parts.username,
        "password": parts.password,
        "ssl": False,
    }
    serving.ask("POST", "/api/postgres_databases", database)
    sink = {
        "name": "orders",
        "database": "shop",
        "source": {"include_tables": ["public.orders"]},
        "destination": {"type": "notebook", "title": "orders"},
    }
    made: dict[str, Any] = serving.ask("POST", "/api/sinks", sink)
    return made


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_backfill_through_a_plugins_sink_delivers_every_row(
    serving: Serving, source: str
) -> None:
    made = make_sink(serving, source)
    assert made["destination"] == {"type": "notebook", "title": "orders"}
    begun = serving.ask("POST", "/api/sinks/orders/backfills", {"table": "public.orders"})

    def ended() -> Any:
        look = serving.ask("GET", f"/api/sinks/orders/backfills/{begun['id']}")
        return look if look["state"] != "active" else None

    backfill = until(ended, "the end of the backfill", 240)
    assert (backfill["state"], backfill["error"]) == ("completed", None)
    assert backfill["rows_ingested_count"] == ROWS
    lines = (serving.files / "1" / "orders.jsonl").read_text().splitlines()
    records = [json.loads(line)["record"] for line in lines]
    assert sorted(record["id"] for record in records) == list(range(1, ROWS + 1))


def test_a_pipeline_that_outlives_its_plugin_says_so(
    tmp_path: Path, serving: Serving, source: str
) -> None:
    made = make_sink(serving, source)
    assert serving.stop() == 0
    without = Serving(serving.home, command="api")
    try:
        without.start()
        headers = {"Authorization": f"Bearer {serving.key}"}
        with httpx.Client(base_url=without.url, headers=headers, trust_env=False) as api:
            path = f"/api/sinks/{made['id']}"
            assert api.get(path).json()["destination"]["type"] == "notebook"
            refused = api.post(f"{path}/backfills", json={"table": "public.orders"})
            assert refused.status_code == 422
            assert "There is no connector 'notebook'" in refused.json()["summary"]
            assert api.patch(path, json={"status": "disabled"}).status_code == 200
            assert api.delete(path).status_code == 200
    finally:
        without.close()


def test_doctor_knows_the_plugin(tmp_path: Path, installed: str) -> None:
    done = run_refill("doctor", "--home", str(tmp_path / "home"), "--json", PYTHONPATH=installed)
    assert done.returncode == 0, done.stdout + done.stderr
    findings = {each["name"]: each for each in json.loads(done.stdout)["findings"]}
    assert findings["Notebook"]["what"] == "sink; at least once"


@pytest.mark.parametrize("command", ["serve", "api", "worker"])
def test_a_plugin_that_is_broken_is_one_sentence_at_the_start(tmp_path: Path, command: str) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    broken = "raise RuntimeError('no wings')"
    make_distribution(folder, "refill-pigeons", module=broken, entry_points={"pigeon": "CONNECTOR"})
    home = str(tmp_path / "home")
    port = () if command == "worker" else ("--port", "0")
    done = run_refill(command, "--home", home, *port, PYTHONPATH=str(folder))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.strip().splitlines() == [
        "refill: The connector 'pigeon' cannot be loaded from refill_pigeons:CONNECTOR "
        "(RuntimeError: no wings): mend the package refill-pigeons, or uninstall it."
    ]


def test_a_first_key_is_not_lost_to_a_start_that_failed(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    make_distribution(folder, "refill-pigeons", module="", entry_points={"pigeon": "CONNECTOR"})
    home = tmp_path / "home"
    assert run_refill(
        "serve", "--home", str(home), "--port", "0", PYTHONPATH=str(folder)
    ).returncode
    mended = Serving(home)
    try:
        assert mended.start().key is not None
    finally:
        mended.close()
