"""Errors as answers: one table per dialect, chosen by the path."""

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.routing import Match

from refill import logs
from refill.api.body import problems_of
from refill.domain.errors import (
    Conflict,
    Forbidden,
    InUse,
    Invalid,
    Malformed,
    NotFound,
    RateLimited,
    RefillError,
    TerminalError,
    TransientError,
    Unauthenticated,
)

logger = logging.getLogger(__name__)

UNFORESEEN = "Something went wrong on our side; the request id is in the server's log."


class MethodNotAllowed(RefillError):
    """The path is there, the method is not."""

    code = "method_not_allowed"

    def __init__(self, allowed: str) -> None:
        super().__init__(f"That method is not there; this path takes: {allowed}.")
        self.allowed = allowed


class BodyTooLarge(RefillError):
    """More bytes than the operator lets in."""

    code = "body_too_large"


class BodyTooSlow(RefillError):
    """The body did not arrive in time."""

    code = "body_too_slow"


class Ambiguous(Malformed):
    """Where the request ends can be read in two ways: somebody in between may read the other."""


# what is left of such a request would be taken for the next one
_LAST_ON_ITS_CONNECTION = (BodyTooLarge, BodyTooSlow, Ambiguous)


class RouteNotFound(NotFound):
    """No such path."""

    def __init__(self) -> None:
        super().__init__("route")
        self.message = "There is nothing at this path."


# the sink dialect
SINK_STATUSES: Mapping[type[Exception], int] = {
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 422,
    Invalid: 422,
    Malformed: 400,
    MethodNotAllowed: 405,
    BodyTooLarge: 413,
    BodyTooSlow: 408,
    RateLimited: 429,
    TransientError: 503,
    TerminalError: 422,
    Exception: 500,
}

# the transfer dialect: status, code and message; the sentence stands in the description
TRANSFER_ANSWERS: Mapping[type[Exception], tuple[int, str, str]] = {
    Unauthenticated: (401, "API_KEY_INVALID", "The API key is not valid"),
    Forbidden: (403, "FORBIDDEN", "Not allowed"),
    NotFound: (404, "NOT_FOUND", "Not Found"),
    Conflict: (422, "UNPROCESSABLE_ENTITY", "The request cannot be processed"),
    InUse: (409, "CONFLICT_ERROR", "Something else still uses it"),
    Invalid: (422, "UNPROCESSABLE_ENTITY", "The request cannot be processed"),
    Malformed: (400, "BAD_REQUEST", "The request could not be read"),
    MethodNotAllowed: (405, "METHOD_NOT_ALLOWED", "Method not allowed"),
    BodyTooLarge: (413, "PAYLOAD_TOO_LARGE", "The body is too large"),
    BodyTooSlow: (408, "REQUEST_TIMEOUT", "The body did not arrive in time"),
    RateLimited: (429, "TOO_MANY_REQUESTS", "Too many requests"),
    TransientError: (503, "SERVICE_UNAVAILABLE", "Not available at the moment"),
    TerminalError: (422, "UNPROCESSABLE_ENTITY", "The request cannot be processed"),
    Exception: (500, "INTERNAL_SERVER_ERROR", "Internal server error"),
}


_NAMED = {
    "transfers": "transfer",
    "backfills": "backfill",
    "transfer_runs": "transfer run",
    "destinations": "destination",
}


def install_error_handlers(app: FastAPI) -> None:
    def answer_refill_error(request: Request, exc: Exception) -> Response:
        return answer_error(request.url.path, exc)

    def answer_validation_error(request: Request, exc: Exception) -> Response:
        if not isinstance(exc, RequestValidationError):
            raise exc
        # the first part of the place is "path" or "query"
        error = problems_of(exc.errors(), lambda place: ".".join(str(part) for part in place[1:]))
        return answer_error(request.url.path, error)

    def answer_http_error(request: Request, exc: Exception) -> Response:
        status = exc.status_code if isinstance(exc, HTTPException) else 500
        if status == 405:
            return answer_error(request.url.path, MethodNotAllowed(_allowed(app, request)))
        return answer_error(request.url.path, RouteNotFound() if status == 404 else exc)

    app.add_exception_handler(RefillError, answer_refill_error)
    app.add_exception_handler(RequestValidationError, answer_validation_error)
    app.add_exception_handler(HTTPException, answer_http_error)


def answer_error(path: str, error: Exception) -> Response:
    """The error in the form of the dialect that the path belongs to."""
    if not isinstance(error, RefillError):
        logger.error("unforeseen error", extra={"path": path}, exc_info=error)
    dated = path == "/v1" or path.startswith("/v1/")
    response = _transfer_answer(error, path) if dated else _sink_answer(error)
    if isinstance(error, RateLimited):
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    elif response.status_code == 503:
        wait = getattr(error, "retry_after_seconds", None)
        response.headers["Retry-After"] = str(max(1, round(wait or 1)))
    if isinstance(error, _LAST_ON_ITS_CONNECTION):
        response.headers["Connection"] = "close"
    if isinstance(error, MethodNotAllowed):
        response.headers["Allow"] = error.allowed
    if isinstance(error, Unauthenticated):
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _sink_answer(error: Exception) -> JSONResponse:
    status: int = _look_up(SINK_STATUSES, error)
    content: dict[str, Any] = {"summary": _summary(error)}
    if isinstance(error, Malformed) and error.fields:
        status = 422  # it is JSON, and a field is wrong
    if status == 422:
        content["validation_errors"] = _fields(error)
        content["code"] = error.reason if isinstance(error, Invalid) else None
        if isinstance(error, Conflict | TerminalError):
            content["code"] = error.code
        if isinstance(error, InUse):  # as the original says of a database that sinks read
            content |= {"success": False, "error": error.message}
    return JSONResponse(content, status)


def _summary(error: Exception) -> str:
    if not isinstance(error, RefillError):
        return UNFORESEEN
    if isinstance(error, NotFound) and not isinstance(error, RouteNotFound):
        return f"Not found: No `{error.kind}` found matching the provided ID or name"
    return error.message


def _fields(error: Exception) -> dict[str, list[str]]:
    if isinstance(error, Invalid):
        return error.fields
    if isinstance(error, Conflict) and error.field:
        return {error.field: [error.message]}
    return {}


def _transfer_answer(error: Exception, path: str) -> JSONResponse:
    status, code, message = _look_up(TRANSFER_ANSWERS, error)
    if isinstance(error, Unauthenticated) and error.missing:
        code, message = "UNAUTHORIZED", "An API key is needed"
    description = error.message if isinstance(error, RefillError) else UNFORESEEN
    if isinstance(error, NotFound):
        # the original's own sentence; by the path, so that "not there" and "not yours" look alike
        what = _asked_for(path)
        description = f"The requested {what} could not be found or you do not have access to it."
    return JSONResponse(
        {
            "meta": {"request_id": logs.request_id.get()},
            "error": {"code": code, "message": message, "description": _cut(description, 255)},
        },
        status,
    )


def _asked_for(path: str) -> str:
    """What a path of the transfer dialect names, in a word of the original's."""
    if path.endswith("/backfills/latest"):
        return "backfill"
    segments = path.split("/")
    return _NAMED.get(segments[4] if len(segments) > 5 else "", "resource")


def _look_up(table: Mapping[type[Exception], Any], error: Exception) -> Any:
    return next(table[kind] for kind in type(error).__mro__ if kind in table)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _allowed(app: FastAPI, request: Request) -> str:
    """Every method of the path; starlette alone names those of the first route that fits."""
    methods: set[str] = set()
    for route in iter_route_contexts(app.routes):
        match, _ = route._effective_route.matches(dict(request.scope))
        if match is not Match.NONE:
            methods |= route.methods or set()
    return ", ".join(sorted(methods))
