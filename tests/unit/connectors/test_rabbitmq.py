"""A broker that takes a connection and says nothing."""

import socket
import threading

import pika
import pytest

from refill.connectors.rabbitmq import channel
from refill.connectors.rabbitmq.channel import ConfirmedChannel
from refill.domain.errors import SinkUnavailable


def test_a_broker_that_does_not_answer_leaves_no_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channel, "OPEN_SECONDS", 0.5)
    threads = set(threading.enumerate())
    with socket.create_server(("127.0.0.1", 0)) as silent:
        parameters = pika.ConnectionParameters("127.0.0.1", silent.getsockname()[1])
        with pytest.raises(SinkUnavailable, match="does not answer"):
            ConfirmedChannel(parameters, "RabbitMQ")
        assert not [t for t in threading.enumerate() if t not in threads and t.is_alive()]
