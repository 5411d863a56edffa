"""The API's own socket."""

import asyncio
import socket

from refill.cli.listener import bind
from refill.settings import Settings


def test_an_answer_waits_for_no_packet() -> None:
    """Nagle's algorithm and delayed acknowledgements together cost 40 ms an answer."""

    async def accepted_socket_option() -> int:
        accepted: asyncio.Future[asyncio.StreamWriter] = asyncio.Future()

        async def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted.set_result(writer)

        listener = bind(Settings(port=0))
        async with await asyncio.start_server(accept, sock=listener):
            _, client = await asyncio.open_connection(*listener.getsockname()[:2])
            writer = await asyncio.wait_for(accepted, 10)
            found: int = writer.get_extra_info("socket").getsockopt(
                socket.IPPROTO_TCP, socket.TCP_NODELAY
            )
            for each in (client, writer):
                each.close()
                await each.wait_closed()
        return found

    assert asyncio.run(accepted_socket_option()) == 1
