"""A request's body as it arrives: read once, within a size and a time."""

import asyncio

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from refill.api.errors import BodyTooLarge, BodyTooSlow


class Body:
    def __init__(
        self, headers: Headers, receive: Receive, limit_bytes: int, seconds: float
    ) -> None:
        declared = headers.get("content-length", "0")
        self._declared = int(declared) if declared.isdigit() else 0
        self._receive = receive
        self._limit_bytes = limit_bytes
        self._seconds = seconds
        self._whole: bytes | None = None
        self._replayed = False
        # one that has none need not be read
        self.ended = not self._declared and "transfer-encoding" not in headers

    async def read(self) -> bytes:
        """BodyTooLarge, BodyTooSlow; ClientDisconnect when it never came."""
        if self._whole is None:
            try:
                self._whole = await asyncio.wait_for(self._read(), self._seconds)
            except TimeoutError as exc:
                raise BodyTooSlow(
                    f"The body did not arrive in {self._seconds:g} s; send the request again."
                ) from exc
            self.ended = True
        return self._whole

    async def replay(self) -> Message:
        """For whatever asks the server itself: the body, and then what comes after it."""
        if self._replayed:
            return await self._receive()
        self._replayed = True
        return {"type": "http.request", "body": await self.read(), "more_body": False}

    async def _read(self) -> bytes:
        if self._declared > self._limit_bytes:
            raise self._too_large()
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                raise ClientDisconnect
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._limit_bytes:
                raise self._too_large()
            if not message.get("more_body"):
                return b"".join(parts)

    def _too_large(self) -> BodyTooLarge:
        return BodyTooLarge(
            f"The body is larger than {self._limit_bytes} bytes; send less at once."
        )
