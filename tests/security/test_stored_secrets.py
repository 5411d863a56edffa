"""Whoever may change an address is not thereby told the secret that was stored for the old one."""

from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from refill.connectors.kit.registry import load_connectors
from refill.domain.errors import Invalid
from refill.service.options import (
    MASK,
    changed,
    parse_options,
    refuse_moved_secrets,
    reveal,
    secret_fields,
)
from tests.integration.api.running import NOBODY, Running, answer
from tests.servers.postgres import free_port

SECRETS: dict[str, dict[str, Any]] = {
    "postgres": {"hostname": "a.test", "database": "d", "username": "u", "password": "hush"},
    "kafka": {"hosts": "a.test:1", "topic": "t", "username": "u", "password": "hush"},
    "redis_stream": {"host": "a.test", "stream_key": "s", "password": "hush"},
    "redis_string": {"host": "a.test", "password": "hush"},
    "nats": {"host": "a.test", "password": "hush", "jwt": "hush", "nkey_seed": "SU" + "A" * 56},
    "rabbitmq": {"host": "a.test", "exchange": "e", "password": "hush"},
    "webhook": {"url": "https://a.test/x", "headers": {"A": "hush"}, "signing_secret": "hush"},
}
MOVES: list[tuple[str, dict[str, Any]]] = [
    ("postgres", {"hostname": "evil.test"}),
    ("postgres", {"port": 5433}),
    ("kafka", {"hosts": "a.test:1,evil.test:1"}),
    ("kafka", {"hosts": "a.test:2"}),
    ("kafka", {"sasl_mechanism": "PLAIN"}),
    ("redis_stream", {"host": "evil.test"}),
    ("redis_string", {"port": 1}),
    ("nats", {"host": "evil.test"}),
    ("nats", {"tls": True}),
    ("rabbitmq", {"port": 1}),
    ("rabbitmq", {"tls": True}),
    ("postgres", {"ssl": False}),
    ("postgres", {"sslmode": "disable", "ssl": False}),
    ("postgres", {"weak_authentication": True}),
    ("webhook", {"url": "https://evil.test/x"}),
    ("webhook", {"url": "http://a.test/x"}),
    ("webhook", {"url": "https://a.test:444/x"}),
]


def update(kind: str, sent: dict[str, Any]) -> dict[str, Any]:
    connector = load_connectors()[kind]
    old = reveal(parse_options(connector, SECRETS[kind]))
    new = reveal(parse_options(connector, changed(old, sent)))
    refuse_moved_secrets(connector, old, new, sent)
    return new


def test_every_connector_with_secrets_says_where_they_go() -> None:
    with_secrets = {
        name: each.options_model
        for name, each in load_connectors().items()
        if secret_fields(each.options_model)
    }
    assert with_secrets.keys() == SECRETS.keys()
    for name, model in with_secrets.items():
        where = model.model_validate(SECRETS[name]).where_secrets_go()
        assert where, name
        assert not any(isinstance(value, SecretStr) for value in where.values()), name


@pytest.mark.parametrize(("kind", "move"), MOVES)
def test_no_stored_secret_follows_to_another_address(kind: str, move: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as refused:
        update(kind, move)
    assert set(refused.value.fields) == secrets_of(kind)
    assert "again" in refused.value.message
    # a mask is no secret either
    masks = {name: MASK for name in secrets_of(kind) if name != "headers"}
    with pytest.raises(Invalid):
        update(kind, {**move, **masks})


@pytest.mark.parametrize(("kind", "move"), MOVES)
def test_a_secret_given_again_moves_along(kind: str, move: dict[str, Any]) -> None:
    again = {name: SECRETS[kind][name] for name in secrets_of(kind)}
    assert update(kind, {**move, **again})


def test_one_header_of_two_given_again_is_not_enough() -> None:
    with pytest.raises(Invalid):
        update("webhook", {"url": "https://evil.test", "headers": {"A": MASK, "B": "new"}})


def test_what_says_nothing_of_the_address_is_changed_as_before() -> None:
    assert update("postgres", {"username": "v", "database": "e"})["password"] == "hush"
    assert update("webhook", {"url": "https://a.test/y"})["headers"] == {"A": "hush"}


def secrets_of(kind: str) -> set[str]:
    return set(secret_fields(load_connectors()[kind].options_model)) & SECRETS[kind].keys()


@pytest.mark.parametrize("move", [{"hostname": "localhost"}, {"port": free_port()}])
def test_a_database_does_not_take_its_password_elsewhere(
    server: Running, api: httpx.Client, move: dict[str, Any]
) -> None:
    path = f"/api/postgres_databases/{server.make_database(api)['id']}"
    refused = answer(api.patch(path, json=move), 422)
    assert "again" in str(refused["validation_errors"]["password"])
    by_url = f"postgresql://{NOBODY['username']}@localhost:{free_port()}/shop"
    answer(api.patch(path, json={"url": by_url}), 422)
    answer(api.patch(path, json={**move, "password": MASK}), 422)
    answer(api.patch(path, json={**move, "password": "mine"}), 200)


def test_a_sink_does_not_take_its_password_elsewhere(server: Running, api: httpx.Client) -> None:
    destination = {"type": "redis_string", "host": "127.0.0.1", "port": 1, "password": "hush"}
    path = f"/api/sinks/{server.make_sink(api, destination=destination)['id']}"
    moved = {**destination, "port": 2, "password": MASK}
    refused = answer(api.patch(path, json={"destination": moved}), 422)
    assert "destination.password" in str(refused)
    answer(api.patch(path, json={"destination": {"type": "redis_string", "port": 2}}), 422)
    answer(api.patch(path, json={"destination": {**moved, "password": "hush"}}), 200)


def test_a_destination_shows_its_password_to_no_other_server(
    server: Running, api: httpx.Client
) -> None:
    """Nor when it is only tested."""
    fields = {**NOBODY, "schema": "lake"}
    body = {"type": "postgres", "display_name": server.name("lake"), "fields": fields}
    made = answer(api.post("/v1/teams/1/destinations", json=body), 201)["data"]
    moved = {**body, "fields": {**fields, "hostname": "localhost"}}
    del moved["fields"]["password"]
    path = f"/v1/teams/1/destinations/{made['id']}"
    tested = {**moved, "destination_id": made["id"]}
    for refused in (
        api.put(path, json=moved),
        api.post("/v1/teams/1/destinations/test-connection", json=tested),
    ):
        assert "again" in str(answer(refused, 422)), refused.text
    answer(api.put(path, json={**moved, "new_password": "mine"}), 200)


def test_an_endpoint_does_not_take_its_headers_to_another_origin(
    server: Running, api: httpx.Client
) -> None:
    path = "/api/destinations/http_endpoints"
    body = {
        "name": server.name("hook"),
        "url": "https://a.test/in",
        "encrypted_headers": {"Authorization": "hush", "X-Two": "hush"},
    }
    path = f"{path}/{answer(api.post(path, json=body), 200)['id']}"
    answer(api.patch(path, json={"url": "https://a.test/other"}), 200)
    for url in ("https://evil.test/in", "http://a.test/in", "https://a.test:8443/in"):
        refused = answer(api.patch(path, json={"url": url}), 422)
        assert "encrypted_headers.Authorization" in str(refused)
        half = {"Authorization": "new", "X-Two": MASK}
        answer(api.patch(path, json={"url": url, "encrypted_headers": half}), 422)
    none: dict[str, str] = {}
    moved = {"url": "https://evil.test/in", "encrypted_headers": none}
    assert answer(api.patch(path, json=moved), 200)["encrypted_headers"] == {}


def test_an_endpoint_does_not_take_the_headers_of_a_sink_along(
    server: Running, api: httpx.Client
) -> None:
    path = "/api/destinations/http_endpoints"
    name = server.name("hook")
    answer(api.post(path, json={"name": name, "url": "https://a.test/in"}), 200)
    destination = {"type": "webhook", "http_endpoint": name, "headers": {"A": "hush"}}
    server.make_sink(api, destination=destination)
    refused = answer(api.patch(f"{path}/{name}", json={"url": "https://evil.test"}), 422)
    assert "secrets of its own" in str(refused)
