"""A receiver can neither keep a slot by answering slowly nor fill the memory by answering much."""

import gzip
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from refill.connectors.kit.addresses import NetworkPolicy
from refill.connectors.webhook import WebhookOptions
from refill.connectors.webhook.request import ANSWER_BYTES, Receiver
from refill.domain.errors import SinkRefused, SinkUnavailable
from tests.waiting import until

HEAD = b"HTTP/1.1 %d Said\r\nContent-Length: %d\r\n%s\r\n"


@contextmanager
def answering(say: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server of one sentence per connection, in raw bytes."""

    def serve(client: socket.socket) -> None:
        with client, suppress(OSError):
            client.recv(65536)
            say(client)

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    threading.Thread(target=serve, args=(client,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


def receiver_of(url: str, seconds: float = 30.0) -> Receiver:
    options = WebhookOptions(url=url, timeout_seconds=seconds)
    return Receiver(options, NetworkPolicy(allow_private=True), sleep=lambda _: None)


def drip(text: bytes) -> Callable[[socket.socket], None]:
    """Never as long without a byte as a read may take."""

    def say(client: socket.socket) -> None:
        for position in range(len(text)):
            client.sendall(text[position : position + 1])
            threading.Event().wait(0.1)

    return say


@pytest.mark.parametrize("text", [HEAD % (200, 9999, b""), HEAD[:9] * 99], ids=["body", "headers"])
def test_a_byte_now_and_then_is_no_answer(text: bytes) -> None:
    with answering(drip(text + b" " * 9999)) as url:
        receiver = receiver_of(url, seconds=0.5)
        with pytest.raises(SinkUnavailable, match="timed out"):
            receiver.post(b"{}", "key")
        receiver.close()


def test_a_packed_answer_is_not_unpacked() -> None:
    packed = gzip.compress(b"x" * 50_000_000)
    said = HEAD % (400, len(packed), b"Content-Encoding: gzip\r\n")
    with answering(lambda client: client.sendall(said + packed)) as url:
        receiver = receiver_of(url)
        with pytest.raises(SinkRefused) as refused:
            receiver.post(b"{}", "key")
        receiver.close()
    assert "xxx" not in refused.value.message


def test_an_answer_is_read_to_four_kilobytes() -> None:
    sent: list[int] = []
    gone = threading.Event()

    def pour(client: socket.socket) -> None:
        client.sendall(HEAD % (200, 10**12, b""))
        try:
            while True:
                sent.append(client.send(b"y" * 65536))
        finally:
            gone.set()

    with answering(pour) as url:
        receiver = receiver_of(url)
        receiver.post(b"{}", "key")
        until(gone.is_set, "that the receiver was hung up on")
        receiver.close()
    assert ANSWER_BYTES == 4096
    assert sum(sent) < 50_000_000  # what the two sockets hold
