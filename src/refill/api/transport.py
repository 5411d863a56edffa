"""What holds for every request: an id, a bounded body, headers, a last resort."""

import logging
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from refill import logs
from refill.api.errors import BodyTooLarge, answer_error
from refill.api.rate import Allowance
from refill.domain.errors import Malformed
from refill.service.identity import new_uid

logger = logging.getLogger(__name__)

_PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE, OPTIONS",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key",
    "Access-Control-Max-Age": "86400",
}
_EXPOSED = "X-Request-Id, X-RateLimit-Limit, X-RateLimit-Remaining, Retry-After"


class Transport:
    """The outermost layer. The body is read here, whole, so that a limit holds for chunked ones
    too; routes find it in `request.state.body`."""

    def __init__(self, app: ASGIApp, *, body_limit_bytes: int, rate_limit: int) -> None:
        self._app = app
        self._body_limit_bytes = body_limit_bytes
        self._rate_limit = rate_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = new_uid()
        token = logs.request_id.set(request_id)
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        began = time.perf_counter()
        status: list[int] = []

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                status.append(message["status"])
                self._add_headers(scope, MutableHeaders(scope=message))
            await send(message)

        try:
            await self._answer(scope, receive, send_with_headers, status)
        finally:
            logger.info(
                "%s %s",
                scope["method"],
                scope["path"],
                extra={
                    "action": "request",
                    "status": status[0] if status else None,
                    "milliseconds": round((time.perf_counter() - began) * 1000, 1),
                },
            )
            logs.request_id.reset(token)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, status: list[int]) -> None:
        path = scope["path"]
        if scope["method"] == "OPTIONS" and _is_v1(path):
            await Response(status_code=204, headers=_PREFLIGHT)(scope, receive, send)
            return
        if "\x00" in path or b"%00" in scope["query_string"]:
            await answer_error(path, Malformed("The address has a NUL character."))(
                scope, receive, send
            )
            return
        try:
            body = await self._read(scope, receive)
        except ClientDisconnect:
            return  # half a request is none: nobody waits for what it would do
        if body is None:
            error = BodyTooLarge(
                f"The body is larger than {self._body_limit_bytes} bytes; send less at once."
            )
            response = answer_error(path, error)
            # what was not read would be taken for the next request
            response.headers["Connection"] = "close"
            await response(scope, receive, send)
            return
        scope["state"]["body"] = body
        try:
            await self._app(scope, _replay(body, receive), send)
        except Exception as exc:
            response = answer_error(path, exc)
            if not status:
                await response(scope, receive, send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body; None when it is over the limit. ClientDisconnect when it never came."""
        declared = Headers(scope=scope).get("content-length", "0")
        if declared.isdigit() and int(declared) > self._body_limit_bytes:
            return None
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise ClientDisconnect
            part = message.get("body", b"")
            size += len(part)
            if size > self._body_limit_bytes:
                return None
            parts.append(part)
            if not message.get("more_body"):
                break
        return b"".join(parts)

    def _add_headers(self, scope: Scope, headers: MutableHeaders) -> None:
        headers["X-Request-Id"] = scope["state"]["request_id"]
        if not _is_v1(scope["path"]) and not scope["path"].startswith("/api/"):
            return
        allowance: Allowance = scope["state"].get("allowance") or Allowance(
            self._rate_limit, self._rate_limit
        )
        headers["X-RateLimit-Limit"] = str(allowance.limit)
        headers["X-RateLimit-Remaining"] = str(allowance.remaining)
        headers["Cache-Control"] = "no-store"
        if _is_v1(scope["path"]):
            headers["Access-Control-Allow-Origin"] = "*"
            headers["Access-Control-Expose-Headers"] = _EXPOSED


def _is_v1(path: str) -> bool:
    return path == "/v1" or path.startswith("/v1/")


def _replay(body: bytes, receive: Receive) -> Receive:
    given = False

    async def receive_again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
