"""NATS: what JetStream keeps of a subject, and what a core subscriber hears."""

import asyncio
import json
import queue
import threading
from collections.abc import Mapping
from typing import Any

import nats
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from refill.connectors.kit.contract import Guarantee
from tests.contract.sinks.bed import Seen, SinkBed
from tests.servers.nats import NatsServer
from tests.servers.postgres import free_port

SUBJECT = "sequin.shop.public.orders.read"


class _Nats(SinkBed):
    fixture = "nats_server"
    connector_type = "nats"
    server: NatsServer

    def start(self) -> None:
        self.server = self.server_of()

    def options(self) -> Mapping[str, Any]:
        server = self.server
        place = {"host": server.host, "port": server.port}
        return {**place, "username": server.username, "password": server.password}

    def unreachable(self) -> Mapping[str, Any]:
        return {**self.options(), "port": free_port()}

    def refused(self) -> Mapping[str, Any]:
        return {**self.options(), "password": "wrong"}


class JetStreamBed(_Nats):
    name = "nats-jetstream"

    def start(self) -> None:
        super().start()
        asyncio.run(self._make())

    def stop(self) -> None:
        asyncio.run(self._remove())

    def rows(self) -> list[Seen]:
        return asyncio.run(self._read())

    async def _make(self) -> None:
        async with await nats.connect(self.server.url) as client:
            await client.jetstream().add_stream(name="orders", subjects=["sequin.>"])

    async def _remove(self) -> None:
        async with await nats.connect(self.server.url) as client:
            await client.jetstream().delete_stream("orders")

    async def _read(self) -> list[Seen]:
        async with await nats.connect(self.server.url) as client:
            stream = client.jetstream()
            found: list[Seen] = []
            state = (await stream.stream_info("orders")).state
            for sequence in range(state.first_seq, state.last_seq + 1):
                try:
                    message = await stream.get_msg("orders", sequence)
                except NotFoundError:
                    continue
                record = json.loads(message.data or b"")["record"]
                found.append((record["id"], record["note"]))
            return found


class CoreNatsBed(_Nats):
    """No stream takes the subject: whoever listens hears it, and repeats too."""

    name = "nats-core"
    guarantee = Guarantee.AT_LEAST_ONCE

    def start(self) -> None:
        super().start()
        self._heard: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._seen: list[Seen] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._client: Client = self._call(nats.connect(self.server.url))
        self._call(self._client.subscribe(SUBJECT, cb=self._hear))
        self._call(self._client.flush())

    def stop(self) -> None:
        self._call(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def rows(self) -> list[Seen]:
        # the answer to our ping comes after all that the server had for us
        self._call(self._client.flush())
        while not self._heard.empty():
            record = json.loads(self._heard.get())["record"]
            self._seen.append((record["id"], record["note"]))
        return list(self._seen)

    async def _hear(self, message: Any) -> None:
        self._heard.put(message.data)

    def _call(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)
