"""The configuration file, by the requests of the original's command-line client and by ours."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import yaml

from refill.cli.root import run
from refill.domain.access import Role, Scope
from tests.integration.api.running import Running, answer
from tests.servers.postgres import PostgresServer

FILE = """
users:
  - email: "{user}"
    password: hush-hush
databases:
  - name: "{shop}"
    url: "{url}"
    slot: {{name: sequin_slot, create_if_not_exists: true}}
    publication: {{name: sequin_pub}}
    pool_size: "5"
http_endpoints:
  - name: "{hook}"
    url: https://hooks.example/in
    headers:
      - key: X-House
        value: atreides
    encrypted_headers:
      - key: Authorization
        value: Bearer hush
sinks:
  - name: "{sink}"
    database: "{shop}"
    source: {{include_tables: [public.orders]}}
    tables:
      - {{name: public.orders, group_column_names: [region]}}
    destination: {{type: webhook, http_endpoint: "{hook}", signing_secret: s3cret}}
    filter: [{{column_name: region, operator: "=", comparison_value: north}}]
    batch_size: 10
    initial_backfill:
      - {{table: public.orders, type: partial, sort_column: day, start_position: 2025-01-01}}
destinations:
  - name: "{lake}"
    type: files
    fields: {{path: "{lake}", format: parquet}}
transfers:
  - name: "{moved}"
    database: "{shop}"
    destination: "{lake}"
    settings: {{table: orders, date_column: day}}
    schedule: [{{run_interval: daily, run_hour: 3}}]
    notification_recipients: [ops@example.com]
"""
KINDS = ["user", "database", "http_endpoint", "sink", "destination", "transfer"]


class TheirClient:
    """The requests that their command-line client makes, and how it reads the answers."""

    def __init__(self, url: str, token: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=30)
        self._token = f"Bearer {token}"

    def __enter__(self) -> "TheirClient":
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def plan(self, text: str) -> tuple[list[dict[str, Any]], list[str]]:
        body = self._post("/api/config/plan", text)
        changes = [
            {
                "resource_type": change["resource_type"],
                "action": change["action"],
                "old": change.get("old"),
                "new": change.get("new"),
            }
            for change in body["changes"]
        ]
        # it counts those whose two sides differ, and stops when there are none
        differing = [change for change in changes if change["old"] != change["new"]]
        assert differing == changes
        return changes, [action["description"] for action in body["actions"]]

    def apply(self, text: str) -> int:
        return len(self._post("/api/config/apply", text)["resources"])

    def export(self, sensitive: bool) -> str:
        path = f"/api/config/export?show-sensitive={str(sensitive).lower()}"
        found = self._http.get(path, headers={"Authorization": self._token})
        assert found.status_code == 200, found.text
        text: str = found.json()["yaml"]
        return text

    def _post(self, path: str, text: str) -> dict[str, Any]:
        content = json.dumps({"yaml": text})
        headers = {"Content-Type": "application/json", "Authorization": self._token}
        found = self._http.post(path, content=content, headers=headers)
        assert found.status_code == 200, found.text
        body: dict[str, Any] = found.json()
        return body


@pytest.fixture(scope="module")
def orders_url(postgres: PostgresServer) -> str:
    url = postgres.create_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY, region text, day date)")
    return url


@pytest.fixture
def token(server: Running) -> str:
    """Of a team that has nothing else."""
    return server.make_token(team_id=server.make_team())


@pytest.fixture
def theirs(server: Running, token: str) -> Iterator[TheirClient]:
    with TheirClient(server.url, token) as client:
        yield client


@pytest.fixture
def file(server: Running, orders_url: str) -> str:
    names = ("user", "shop", "hook", "sink", "lake", "moved")
    return FILE.format(url=orders_url, **{name: server.name(name) for name in names})


def test_their_client_plans_applies_and_finds_nothing_left_to_do(
    server: Running, theirs: TheirClient, file: str, token: str
) -> None:
    changes, actions = theirs.plan(file)
    assert [(change["resource_type"], change["action"]) for change in changes] == [
        (kind, "create") for kind in KINDS
    ]
    assert len(actions) == 1
    assert "hush" not in json.dumps(changes)
    assert "s3cret" not in json.dumps(changes)
    assert theirs.apply(file) >= len(KINDS)
    assert theirs.plan(file) == ([], [])
    with server.client(token) as api:
        sink = answer(api.get("/api/sinks"), 200)["data"][0]
        assert sink["batch_size"] == 10
        assert [one["sort_column"] for one in sink["active_backfills"]] == ["day"]
        database = answer(api.get("/api/postgres_databases"), 200)["data"][0]
        assert database["pool_size"] == 5
        assert database["replication_slots"][0]["slot_name"] == "sequin_slot"
        theirs.apply(file)
        again = answer(api.get("/api/sinks"), 200)["data"][0]
        assert again["updated_at"] == sink["updated_at"]


def test_an_export_can_be_applied_to_another_team(
    server: Running, theirs: TheirClient, file: str, orders_url: str
) -> None:
    theirs.apply(file)
    assert "s3cret" not in theirs.export(False)
    assert theirs.plan(theirs.export(False)) == ([], [])  # masks keep what is there
    text = theirs.export(True)
    assert "s3cret" in text
    with TheirClient(server.url, server.make_token(team_id=server.make_team())) as others:
        # their own folder: another team's files are elsewhere anyway
        others.apply(text)
        assert others.plan(text) == ([], [])
        assert others.export(True) == text


def test_a_changed_file_says_what_differs_and_shows_no_secret(
    theirs: TheirClient, file: str
) -> None:
    theirs.apply(file)
    changed = file.replace("s3cret", "an0ther").replace("batch_size: 10", "batch_size: 20")
    changes, _ = theirs.plan(changed)
    assert [change["action"] for change in changes] == ["update"]
    old, new = changes[0]["old"], changes[0]["new"]
    assert (old["batch_size"], new["batch_size"]) == (10, 20)
    assert old["destination"]["signing_secret"] != new["destination"]["signing_secret"]
    assert "an0ther" not in json.dumps(changes)
    theirs.apply(changed)
    assert theirs.plan(changed) == ([], [])
    without = yaml.safe_load(changed)
    del without["sinks"][0]["filter"]
    changes, _ = theirs.plan(yaml.safe_dump(without))
    assert changes[0]["new"]["filter"] == "none"


def test_nothing_is_deleted_unless_it_is_asked_for(
    server: Running, theirs: TheirClient, file: str, token: str
) -> None:
    theirs.apply(file)
    empty = {"sinks": [], "transfers": [], "destinations": []}
    text = yaml.safe_dump(empty)
    assert theirs.plan(text) == ([], [])
    with server.client(token) as api:
        pruned = answer(api.post("/api/config/apply", json={"yaml": text, "prune": True}), 200)
        kinds = [change["resource_type"] for change in pruned["changes"]]
        assert kinds == ["transfer", "destination", "sink"]
        assert answer(api.get("/api/sinks"), 200)["data"] == []
        # sections that the file does not have are left alone
        assert len(answer(api.get("/api/postgres_databases"), 200)["data"]) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sinks: [", "not YAML"),
        ("- a", "sections"),
        ("sinks: {a: b}", "must be a list"),
        ("snks: []", "is no section"),
        ("functions: [{name: f, code: x}]", "functions are not run here"),
        ("sinks: [{name: a, database: nope, destination: {type: files, path: x}}]", "nope"),
        ("sinks: [{name: a, databse: b}]", "databse"),
        ("databases: [{name: a, hostname: h}, {name: a, hostname: h}]", "twice"),
        (
            "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
            "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
            "e: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]",
            "more than",
        ),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_by_name(
    api: httpx.Client, text: str, problem: str
) -> None:
    refused = api.post("/api/config/plan", json={"yaml": text})
    assert refused.status_code in (400, 422)
    assert problem in refused.text


def test_what_a_refused_entry_leaves_is_named_and_gone_on_from(
    server: Running, theirs: TheirClient, file: str, token: str
) -> None:
    broken = yaml.safe_load(file)
    broken["sinks"][0]["tables"] = [{"name": "public.nowhere"}]
    with server.client(token) as api:
        refused = api.post("/api/config/apply", json={"yaml": yaml.safe_dump(broken)})
        said = answer(refused, 422)["summary"]
        assert broken["sinks"][0]["name"] in said
        assert "public.nowhere" in said
    changes, _ = theirs.plan(file)
    assert [change["resource_type"] for change in changes] == KINDS[3:]


def test_teams_and_users_are_made_by_those_who_may(server: Running, api: httpx.Client) -> None:
    team = server.name("tenant")
    body = {"yaml": yaml.safe_dump({"teams": [{"name": team}]})}
    answer(api.post("/api/config/apply", json=body), 200)  # an owner of team 1
    assert team in [each.name for each in server.store.list_teams()]
    other = server.make_token(team_id=server.make_team())
    with server.client(other) as elsewhere:
        body = {"yaml": yaml.safe_dump({"teams": [{"name": server.name("no")}]})}
        answer(elsewhere.post("/api/config/apply", json=body), 403)
    users = {"yaml": yaml.safe_dump({"users": [{"name": server.name("u"), "role": "viewer"}]})}
    with server.client(server.make_token(role=Role.EDITOR)) as editor:
        answer(editor.post("/api/config/apply", json=users), 403)
        answer(editor.get("/api/config/export?show-sensitive=true"), 403)
    with server.client(server.make_token(Scope.SINKS_WRITE)) as narrow:
        answer(narrow.post("/api/config/plan", json=users), 403)


def test_the_server_says_its_version(server: Running) -> None:
    found = answer(httpx.get(f"{server.url}/info"), 200)
    assert found["nodes"] == []
    assert answer(httpx.get(f"{server.url}/info/version"), 200)["version"] == found["version"]


def test_our_command_fills_in_variables_and_asks_first(
    server: Running,
    token: str,
    file: str,
    orders_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    written = tmp_path / "refill.yaml"
    written.write_text(file.replace(orders_url, "${SHOP_URL}").replace('"5"', '"${POOL:-7}"'))
    monkeypatch.setenv("REFILL_URL", server.url)
    monkeypatch.setenv("REFILL_API_KEY", token)
    assert run(["config", "plan", str(written)]) == 1
    assert "SHOP_URL is not set" in capsys.readouterr().err
    monkeypatch.setenv("SHOP_URL", orders_url)
    assert run(["config", "plan", str(written)]) == 0
    shown = capsys.readouterr().out
    assert "6 to add, 0 to change, 0 to delete." in shown
    assert "pool_size: 7" in shown
    assert "Start the initial backfill" in shown
    assert run(["config", "apply", str(written)]) == 1  # nobody is there to ask
    assert run(["config", "apply", str(written), "--yes"]) == 0
    capsys.readouterr()
    assert run(["config", "apply", str(written), "--yes"]) == 0
    assert "Nothing changes." in capsys.readouterr().out
    monkeypatch.setenv("POOL", "9")
    assert run(["config", "plan", str(written)]) == 0
    assert "pool_size: 7 → 9" in capsys.readouterr().out
    assert run(["config", "export"]) == 0
    assert set(yaml.safe_load(capsys.readouterr().out)) == {
        *("databases", "http_endpoints", "sinks", "destinations", "transfers")
    }
