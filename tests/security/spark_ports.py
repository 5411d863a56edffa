"""Spark's own protocol, as somebody else on the machine would speak it to the driver's ports."""

import socket
import struct

import psutil

_OPEN_BLOCKS = 0  # of BlockTransferMessage
_RPC_REQUEST, _RPC_RESPONSE = 3, 4  # of Message


def ports_of(pid: int) -> list[int]:
    """Where a process listens."""
    found = psutil.Process(pid).net_connections("tcp")
    return sorted({each.laddr.port for each in found if each.status == psutil.CONN_LISTEN})


def gives_block(port: int, block: str) -> bool:
    """Whether a stranger who asks for a block there is offered a stream of it."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(_request(block))
        try:
            answer = connection.recv(9)
        except OSError:
            return False
    return len(answer) == 9 and answer[8] == _RPC_RESPONSE


def _request(block: str) -> bytes:
    body = struct.pack(">B", _OPEN_BLOCKS) + _text("app") + _text("driver")
    body += struct.pack(">i", 1) + _text(block)
    header = struct.pack(">bqi", _RPC_REQUEST, 1, len(body))
    return struct.pack(">q", 8 + len(header) + len(body)) + header + body


def _text(value: str) -> bytes:
    return struct.pack(">i", len(value)) + value.encode()
