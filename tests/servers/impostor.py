"""A server that somebody else put in the place of the real one: it hears what it is told."""

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.servers.certificates import Certificates

SSL_REQUEST = bytes.fromhex("0000000804d2162f")


@dataclass
class Impostor:
    """Speaks no protocol but the few words that lead to TLS, or away from it."""

    kind: str
    port: int
    heard: list[bytes] = field(default_factory=list)
    handshakes: int = 0

    @property
    def said_to_it(self) -> bytes:
        return b"".join(self.heard)


@contextmanager
def impostor(kind: str, certificates: Certificates | None) -> Iterator[Impostor]:
    """Without certificates it offers no TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = Impostor(kind, listener.getsockname()[1])
        thread = threading.Thread(target=_serve, args=(made, listener, certificates), daemon=True)
        thread.start()
        yield made
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def _serve(made: Impostor, listener: socket.socket, certificates: Certificates | None) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_attend, args=(made, connection, certificates), daemon=True).start()


def _attend(made: Impostor, connection: socket.socket, certificates: Certificates | None) -> None:
    connection.settimeout(10)
    with contextlib.suppress(OSError), connection:
        _greet(made, connection, certificates is not None)
        if certificates is None:
            _listen(made, connection)
            return
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.certificate, certificates.key)
        with context.wrap_socket(connection, server_side=True) as encrypted:
            # TLS 1.3 ends for the server before the client has looked at the certificate
            _listen(made, encrypted)


def _greet(made: Impostor, connection: socket.socket, offers_tls: bool) -> None:
    if made.kind == "nats":
        info = {"server_id": "x", "max_payload": 1000000, "auth_required": True}
        info |= {"tls_required": True} if offers_tls else {}
        connection.sendall(b"INFO " + json.dumps(info).encode() + b"\r\n")
    if made.kind == "postgres":
        asked = connection.recv(8)
        if asked != SSL_REQUEST:
            made.heard.append(asked)
            return
        connection.sendall(b"S" if offers_tls else b"N")


def _listen(made: Impostor, connection: socket.socket) -> None:
    while data := connection.recv(65536):
        made.handshakes += 1
        made.heard.append(data)
        if made.kind == "postgres":
            # a password in clear, please
            connection.sendall(b"R" + (8).to_bytes(4, "big") + (3).to_bytes(4, "big"))
