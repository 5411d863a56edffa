"""What holds for every request: an id, a bounded body, headers, a last resort."""

import logging
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from refill import logs
from refill.api.errors import Ambiguous, answer_error
from refill.api.rate import Allowance
from refill.api.request_body import Body
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
    """The outermost layer. A body is read whole, by `request.state.read_body`, so that limits of
    size and time hold for chunked ones too; a route does so once it knows who is asking."""

    def __init__(
        self, app: ASGIApp, *, body_limit_bytes: int, body_seconds: float, rate_limit: int
    ) -> None:
        self._app = app
        self._body_seconds = body_seconds
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
        headers = Headers(scope=scope)
        if "content-length" in headers and "transfer-encoding" in headers:
            error = Ambiguous("The request has a Content-Length and a Transfer-Encoding; send one.")
            await answer_error(path, error)(scope, receive, send)
            return
        body = Body(headers, receive, self._body_limit_bytes, self._body_seconds)
        scope["state"]["read_body"] = body.read
        scope["state"]["body"] = b""  # for whoever may come in without being asked who they are
        scope["state"]["unread"] = lambda: not body.ended
        try:
            await self._app(scope, body.replay, send)
        except ClientDisconnect:
            return  # half a request is none: nobody waits for what it would do
        except Exception as exc:
            response = answer_error(path, exc)
            if not status:
                await response(scope, receive, send)

    def _add_headers(self, scope: Scope, headers: MutableHeaders) -> None:
        headers["X-Request-Id"] = scope["state"]["request_id"]
        if scope["state"].get("unread", lambda: False)():
            # answered before it was read: what is left would be taken for the next request
            headers["Connection"] = "close"
        if not _is_v1(scope["path"]) and not scope["path"].startswith("/api/"):
            return
        allowance: Allowance = scope["state"].get("allowance") or Allowance(
            self._rate_limit, self._rate_limit
        )
        if allowance.limit:
            headers["X-RateLimit-Limit"] = str(allowance.limit)
            headers["X-RateLimit-Remaining"] = str(allowance.remaining)
        headers["Cache-Control"] = "no-store"
        if _is_v1(scope["path"]):
            headers["Access-Control-Allow-Origin"] = "*"
            headers["Access-Control-Expose-Headers"] = _EXPOSED


def _is_v1(path: str) -> bool:
    return path == "/v1" or path.startswith("/v1/")
