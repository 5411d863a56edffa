"""A server that lets everybody in and then says nothing, as PostgreSQL speaks."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_AUTHENTICATED = b"R\x00\x00\x00\x08\x00\x00\x00\x00"
_KEY = b"K\x00\x00\x00\x0c\x00\x00\x00\x01\x00\x00\x00\x02"  # for cancelling
_READY = b"Z\x00\x00\x00\x05I"
_SSL, _GSS, _CANCEL = 80877103, 80877104, 80877102


def _parameter(name: str, value: str) -> bytes:
    body = name.encode() + b"\0" + value.encode() + b"\0"
    return b"S" + struct.pack("!I", len(body) + 4) + body


@dataclass
class Mute:
    port: int
    greeted: int = 0  # how many came in
    gone: int = 0  # how many left
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"postgresql://someone:secret@127.0.0.1:{self.port}/shop"

    def serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            while True:
                length, code = struct.unpack("!II", _read(client, 8))
                rest = _read(client, length - 8)
                if code in (_SSL, _GSS):
                    client.sendall(b"N")
                    continue
                if code == _CANCEL or not rest:
                    return
                break
            client.sendall(
                _AUTHENTICATED
                + _parameter("server_version", "15.4")
                + _parameter("client_encoding", "UTF8")
                + _parameter("standard_conforming_strings", "on")
                + _KEY
                + _READY
            )
            with self._lock:
                self.greeted += 1
            while client.recv(4096):
                pass
        with self._lock:
            self.gone += 1


@contextmanager
def mute_server() -> Iterator[Mute]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        mute = Mute(listener.getsockname()[1])

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    threading.Thread(target=mute.serve, args=(client,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield mute


def _read(client: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = client.recv(count - len(found))
        if not part:
            raise ConnectionError
        found += part
    return found
