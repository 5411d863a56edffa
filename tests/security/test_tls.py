"""TLS that was asked for is TLS, or nothing is said: to no server that offers none, to none whose
certificate a stranger signed, to none that has another name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refill.connectors.kit.contract import Context
from refill.connectors.kit.registry import load_connectors
from refill.domain.errors import RefillError, SinkRefused, SinkUnavailable
from refill.service.options import secret_fields
from tests.integration.messages.orders import SCHEMA, make_job, make_ticket, rows_of
from tests.servers.certificates import Certificates, make_certificates
from tests.servers.impostor import Impostor, impostor

SECRET = "xyzzy-hush-hush"
CONTEXT = Context(team_id=1, files_root="/nowhere", allow_private_hosts=True)
LOGIN = {"username": "refill", "password": SECRET, "tls": True}
Options = Callable[[int, str], dict[str, Any]]
WAYS: dict[str, Options] = {
    "postgres": lambda port, ca: {
        "hostname": "127.0.0.1",
        "port": port,
        "database": "d",
        "username": "u",
        "password": SECRET,
        "ssl": True,
        "ca_certificate": ca,
    },
    "kafka": lambda port, ca: {
        "hosts": f"127.0.0.1:{port}",
        "topic": "t",
        "ca_certificate": ca,
        **LOGIN,
    },
    "redis_stream": lambda port, ca: {
        "host": "127.0.0.1",
        "port": port,
        "stream_key": "s",
        "ca_certificate": ca,
        **LOGIN,
    },
    "redis_string": lambda port, ca: {
        "host": "127.0.0.1",
        "port": port,
        "ca_certificate": ca,
        **LOGIN,
    },
    "nats": lambda port, ca: {"host": "127.0.0.1", "port": port, "ca_certificate": ca, **LOGIN},
    "rabbitmq": lambda port, ca: {
        "host": "127.0.0.1",
        "port": port,
        "exchange": "e",
        "ca_certificate": ca,
        **LOGIN,
    },
    "webhook": lambda port, ca: {
        "url": f"https://127.0.0.1:{port}/",
        "headers": {"Authorization": SECRET},
    },
}


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("ours"))


def try_to_send(kind: str, port: int, authority: str) -> RefillError:
    """What the sink says; it is told to deliver, not only to look."""
    connector = load_connectors()[kind]
    options = connector.options_model.model_validate(WAYS[kind](port, authority))
    assert connector.open_sink is not None
    sink = connector.open_sink(options, CONTEXT)
    try:
        with pytest.raises((SinkRefused, SinkUnavailable)) as said:
            sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 1))
    finally:
        sink.close()
    return said.value


def test_every_connector_that_can_encrypt_is_attacked_here() -> None:
    encrypts = {
        name
        for name, each in load_connectors().items()
        if {"tls", "ssl", "url"} & each.options_model.model_fields.keys()
        and secret_fields(each.options_model)
    }
    assert encrypts == WAYS.keys()


@pytest.mark.parametrize("kind", WAYS)
def test_a_server_without_tls_is_told_nothing(kind: str, ours: Certificates) -> None:
    with impostor(kind, None) as server:
        said = try_to_send(kind, server.port, ours.authority)
    assert_silent(server, said)


@pytest.mark.parametrize("kind", WAYS)
def test_a_certificate_of_a_stranger_is_told_nothing(
    kind: str, ours: Certificates, tmp_path: Path
) -> None:
    with impostor(kind, make_certificates(tmp_path)) as server:
        said = try_to_send(kind, server.port, ours.authority)
    assert_silent(server, said)


@pytest.mark.parametrize("kind", sorted(WAYS.keys() - {"webhook"}))
def test_a_certificate_for_another_name_is_told_nothing(kind: str, tmp_path: Path) -> None:
    elsewhere = make_certificates(tmp_path, name="elsewhere.test")
    with impostor(kind, elsewhere) as server:
        said = try_to_send(kind, server.port, elsewhere.authority)
    assert_silent(server, said)


@pytest.mark.parametrize("kind", sorted(WAYS.keys() - {"webhook"}))
def test_the_right_certificate_is_spoken_to(kind: str, ours: Certificates) -> None:
    """Else the tests above would show nothing."""
    with impostor(kind, ours) as server:
        try_to_send(kind, server.port, ours.authority)
    assert server.handshakes


def assert_silent(server: Impostor, said: RefillError) -> None:
    assert SECRET.encode() not in server.said_to_it
    assert SECRET not in said.message
    assert len(said.message.splitlines()) == 1
