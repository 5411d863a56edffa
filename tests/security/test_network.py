"""One network policy for all connectors, for the address that is really connected to."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from refill.connectors.kit.addresses import NetworkPolicy
from refill.connectors.kit.contract import Context
from refill.connectors.kit.registry import load_connectors
from refill.domain.errors import RefillError, SinkRefused, SinkUnavailable, SourceRefused
from refill.settings import Settings
from tests.security.test_tls import WAYS
from tests.servers.impostor import Impostor, impostor
from tests.servers.kafka import KafkaServer

METADATA = "169.254.169.254"


def open_end(kind: str, options: dict[str, Any], **policy: Any) -> Any:
    connector = load_connectors()[kind]
    opener = connector.open_source or connector.open_sink
    assert opener is not None
    context = Context(team_id=1, files_root="/nowhere", **policy)
    return opener(connector.options_model.model_validate(options), context)


def plain(kind: str, port: int, host: str = "127.0.0.1") -> dict[str, Any]:
    options = {
        name: value.replace("127.0.0.1", host) if isinstance(value, str) else value
        for name, value in WAYS[kind](port, "").items()
    }
    options.pop("ca_certificate", None)
    return {**options, **({"tls": False} if "tls" in options else {})}


@pytest.fixture
def listener() -> Iterator[Impostor]:
    with impostor("nobody", None) as server:
        yield server


@pytest.mark.parametrize("kind", WAYS)
@pytest.mark.parametrize(
    "policy",
    [
        {"refused_networks": "127.0.0.0/8,::1/128"},
        {"allowed_networks": "192.0.2.0/24"},
        {"allowed_networks": "127.0.0.0/8", "refused_networks": "127.0.0.1/32"},
    ],
)
def test_what_the_operator_refuses_is_not_connected_to(
    kind: str, policy: dict[str, str], listener: Impostor
) -> None:
    end = open_end(kind, plain(kind, listener.port), allow_private_hosts=True, **policy)
    with pytest.raises((SinkRefused, SourceRefused), match="NETWORKS"):
        end.test()
    end.close()
    assert not listener.heard


@pytest.mark.parametrize("kind", WAYS)
def test_metadata_is_never_reached_whatever_is_allowed(kind: str) -> None:
    policy = {"allow_private_hosts": True, "allowed_networks": "0.0.0.0/0"}
    end = open_end(kind, plain(kind, 80, METADATA), **policy)
    with pytest.raises((SinkRefused, SourceRefused), match="credentials"):
        end.test()
    end.close()


@pytest.mark.parametrize("kind", sorted(WAYS.keys() - {"kafka"}))
def test_a_second_look_up_is_not_followed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name leads to an innocent address first, and to the metadata of the machine after."""
    reached: list[Any] = []
    answers = iter(["192.0.2.1"])
    real = socket.getaddrinfo

    def rebinding(host: Any, port: Any, *rest: Any, **more: Any) -> Any:
        if host == "rebinding.test":
            return real(next(answers, METADATA), port, *rest, **more)
        return real(host, port, *rest, **more)

    connected = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        if address[0] == "127.0.0.1":  # a library's own pair of sockets
            return connected(self, address)
        reached.append(address[0])
        raise ConnectionRefusedError("not in this test")

    monkeypatch.setattr("socket.getaddrinfo", rebinding)
    monkeypatch.setattr("socket.socket.connect", connect, raising=False)
    monkeypatch.setattr("socket.socket.connect_ex", lambda self, at: connect(self, at))
    options = plain(kind, 80, "rebinding.test")
    if kind == "postgres":
        from refill.connectors.postgres.connection import conninfo

        model = load_connectors()[kind].options_model.model_validate(options)
        assert "hostaddr=192.0.2.1" in conninfo(model, "test")  # type: ignore[arg-type]
        return
    end = open_end(kind, options, allow_private_hosts=True)
    with pytest.raises((RefillError, SinkUnavailable)):
        end.test()
    end.close()
    assert METADATA not in reached


def test_brokers_that_a_cluster_advertises_are_looked_at(kafka: KafkaServer) -> None:
    """It is asked at one address, and says that its brokers are at another."""
    cluster = {"hosts": kafka.hosts.replace("127.0.0.1", "localhost"), "topic": "t"}
    sink = open_end("kafka", cluster, refused_networks="127.0.0.1/32")
    with pytest.raises(SinkRefused):
        sink.test()
    sink.close()


def test_an_advertised_broker_in_a_refused_network_ends_it(
    kafka: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bootstrap address passes; what comes with the cluster's answer does not."""
    seen: list[str] = []
    real = NetworkPolicy.addresses

    def addresses(self: NetworkPolicy, host: str, port: int, **more: Any) -> Any:
        seen.append(host)
        # the first is the one that we were given
        return real(self, host if len(seen) == 1 else METADATA, port, **more)

    monkeypatch.setattr(NetworkPolicy, "addresses", addresses)
    sink = open_end("kafka", {"hosts": kafka.hosts, "topic": "t"})
    with pytest.raises(SinkRefused, match="credentials"):
        sink.test()
    sink.close()
    assert len(seen) == 2


def test_networks_are_read_when_it_starts() -> None:
    settings = Settings(refused_networks="10.0.0.0/8, ::1/128")
    assert settings.refused_networks == "10.0.0.0/8,::1/128"
    with pytest.raises(ValueError, match="network"):
        Settings(allowed_networks="10.0.0.1/8")


def test_the_default_lets_databases_be_private_and_webhooks_not() -> None:
    policy = NetworkPolicy()
    assert policy.addresses("10.0.0.1", 5432) == ("10.0.0.1",)
    with pytest.raises(SinkRefused):
        policy.addresses("10.0.0.1", 80, public=True)
    assert NetworkPolicy(allowed="10.0.0.0/8").addresses("10.0.0.1", 80, public=True)
