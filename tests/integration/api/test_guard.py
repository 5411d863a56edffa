"""Who comes in, on every route that there is: generated from the app, so that new routes are held
to it too."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from refill.api.route import SCOPE
from refill.domain.access import Role, Scope
from refill.domain.slice import Dated
from refill.store.records import PlannedSlice
from tests.integration.api.running import Running, answer

EXAMPLE_TEXT = {"date": "2024-01-01", "date-time": "2024-01-01T00:00:00Z"}


@dataclass(frozen=True, eq=False)
class Route:
    method: str
    path: str
    scope: Scope
    body: Any
    query: dict[str, str]

    def fill(self, ids: dict[str, str]) -> str:
        return self.path.format(**ids)


def routes_of(app: FastAPI) -> list[Route]:
    document = app.openapi()
    return [
        Route(
            method.upper(),
            path,
            Scope(operation[SCOPE]),
            body_of(document, operation),
            {
                parameter["name"]: str(example(document, parameter["schema"]))
                for parameter in operation.get("parameters", ())
                if parameter["in"] == "query" and parameter["required"]
            },
        )
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if SCOPE in operation
    ]


def body_of(document: dict[str, Any], operation: dict[str, Any]) -> Any:
    body = operation.get("requestBody")
    return body and example(document, body["content"]["application/json"]["schema"])


def example(document: dict[str, Any], schema: dict[str, Any]) -> Any:
    """The smallest value that the schema allows, as far as the bodies of this API go."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if members := schema.get("anyOf") or schema.get("oneOf"):
        return example(document, members[0])
    if "enum" in schema or "const" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    match schema.get("type"):
        case "object":
            required = schema.get("required", ())
            return {name: example(document, schema["properties"][name]) for name in required}
        case "array":
            count = schema.get("minItems", 0)
            return [example(document, schema["items"]) for _ in range(count)]
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case _:
            return EXAMPLE_TEXT.get(schema.get("format", ""), "x" * schema.get("minLength", 1))


def send(client: httpx.Client, route: Route, ids: dict[str, str]) -> httpx.Response:
    return client.request(route.method, route.fill(ids), json=route.body, params=route.query)


@pytest.fixture(scope="module")
def owner(server: Running) -> Iterator[dict[str, str]]:
    """Team 1 with one of everything: the ids that the paths name."""
    with server.client() as api:
        database = server.make_database(api)
        endpoint = answer(
            api.post(
                "/api/destinations/http_endpoints",
                json={"name": server.name("hook"), "url": "https://hooks.example/in"},
            ),
            200,
        )
        sink = server.make_sink(api, database=database["name"])
        hook = {"type": "webhook", "url": "https://hooks.example/told"}
        notification = answer(api.post("/api/notifications", json=hook), 201)
        backfill = answer(api.post(f"/api/sinks/{sink['id']}/backfills"), 200)
        ids = {
            "team_id": "1",
            "database": database["id"],
            "endpoint": endpoint["id"],
            "sink": sink["id"],
            "notification": notification["id"],
            "backfill": backfill["id"],
        }
        transfer_ids = server.make_transfer_backfill(api, database["name"])
        server.plan(PlannedSlice(extent=Dated(date=date(2024, 1, 1)), target="lake/2024-01-01"))
        run = server.store.list_slices(int(transfer_ids["backfill_id"])).items[0]
        yield {**ids, **transfer_ids, "transfer_run_id": str(run.id)}


def test_every_route_of_both_dialects_is_guarded(server: Running) -> None:
    open_paths = {
        path
        for path, operations in server.app.openapi()["paths"].items()
        if any(SCOPE not in operation for operation in operations.values())
    }
    assert open_paths == {"/health", "/metrics", "/info", "/info/version"}


def test_no_route_answers_without_a_key(server: Running, owner: dict[str, str]) -> None:
    with httpx.Client(base_url=server.url) as nobody:
        found = {route: send(nobody, route, owner) for route in routes_of(server.app)}
    assert {route.path: r.text for route, r in found.items() if r.status_code != 401} == {}


def test_no_route_answers_a_key_without_its_scope(server: Running, owner: dict[str, str]) -> None:
    unlike = {scope: scope_apart(scope) for scope in Scope}
    clients = {scope: server.client(server.make_token(other)) for scope, other in unlike.items()}
    found = {route: send(clients[route.scope], route, owner) for route in routes_of(server.app)}
    for client in clients.values():
        client.close()
    assert {route.path: r.text for route, r in found.items() if r.status_code != 403} == {}


def test_no_route_that_writes_answers_a_viewer(server: Running, owner: dict[str, str]) -> None:
    token = server.make_token(role=Role.VIEWER)
    writing = [route for route in routes_of(server.app) if route.scope.writes]
    with server.client(token) as viewer:
        found = {route: send(viewer, route, owner) for route in writing}
    assert {route.path: r.text for route, r in found.items() if r.status_code != 403} == {}


def test_another_teams_ids_are_not_there_on_any_route(
    server: Running, owner: dict[str, str]
) -> None:
    """Neither below the other team's path, nor below one's own."""
    team = server.make_team()
    with server.client(server.make_token(team_id=team)) as stranger:
        for route in routes_of(server.app):
            below_theirs = send(stranger, route, owner)
            below_own = send(stranger, route, {**owner, "team_id": str(team)})
            names_an_id = "{" in route.path.replace("{team_id}", "")
            expected = 404 if "{team_id}" in route.path or names_an_id else None
            if expected:
                assert below_theirs.status_code == 404, (route, below_theirs.text)
            if names_an_id:
                assert below_own.status_code == 404, (route, below_own.text)
            # what is listed is the stranger's own
            assert owner["sink"] not in below_own.text, route
            assert owner["database"] not in below_own.text, route


def test_not_there_and_not_yours_look_the_same(server: Running, owner: dict[str, str]) -> None:
    team = server.make_team()
    with server.client(server.make_token(team_id=team)) as stranger:
        theirs = stranger.get(f"/api/sinks/{owner['sink']}/backfills/{owner['backfill']}")
        absent = stranger.get("/api/sinks/nothing/backfills/nothing")
    assert theirs.json() == absent.json()
    expected = "Not found: No `sink` found matching the provided ID or name"
    assert theirs.json() == {"summary": expected}


def scope_apart(scope: Scope) -> Scope:
    stem = scope.value.removesuffix("_read").removesuffix("_write")
    return next(
        other
        for other in (Scope.SINKS_READ, Scope.TRANSFERS_READ)
        if not other.value.startswith(stem)
    )
