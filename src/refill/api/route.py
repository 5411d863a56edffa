"""The one kind of route that both dialects have: guarded, and repeatable by Idempotency-Key."""

import re
from asyncio import Lock
from collections.abc import Awaitable, Callable, Coroutine
from typing import Annotated, Any
from weakref import WeakValueDictionary

from fastapi import Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from refill.domain.access import Caller, Scope
from refill.domain.errors import Invalid, RefillError, TransientError
from refill.service.answers import Answers, Reservation
from refill.service.identity import new_uid, repeatable_uid

SCOPE = "x-scope"  # where a route's scope stands in its OpenAPI operation

_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_HEADER = "Idempotency-Key"

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class GuardedRoute(APIRoute):
    """Admitted first, so that nothing is read or replayed for whom may not see it."""

    def get_route_handler(self) -> Handler:
        run = super().get_route_handler()
        needed = Scope((self.openapi_extra or {})[SCOPE])

        async def handle(request: Request) -> Response:
            state = request.app.state
            await run_in_threadpool(state.gate.admit, request, needed)
            # only now: whoever has no key has nothing to send us
            request.state.body = await request.state.read_body()
            if request.method != "POST" or _HEADER not in request.headers:
                return await run(request)
            answers: KeptAnswers = state.answers
            return await answers.once(request, run)

        return handle


class KeptAnswers:
    """The same key and body give the same answer again; the same key with another body is refused.

    Only what succeeded is kept: a request that was refused can simply be made again.
    """

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._locks: WeakValueDictionary[tuple[int, str, str], Lock] = WeakValueDictionary()

    async def once(
        self, request: Request, run: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        caller: Caller = request.state.caller
        place = (caller.team_id, route_of(request), key_of(request))
        lock = self._locks.setdefault(place, Lock())
        async with lock:
            kept = await run_in_threadpool(self._answers.reserve, *place, request.state.body)
            if isinstance(kept, Reservation):
                request.state.repeated = kept.repeated
                return await self._answered(request, run, kept)
        return Response(
            kept.body or None,
            kept.status,
            {"Idempotent-Replayed": "true"},
            "application/json" if kept.body else None,
        )

    async def _answered(
        self,
        request: Request,
        run: Callable[[Request], Awaitable[Response]],
        reservation: Reservation,
    ) -> Response:
        try:
            response = await run(request)
        except TransientError:
            raise  # nobody knows what became of it: the key stays reserved
        except (RefillError, RequestValidationError):
            await run_in_threadpool(self._answers.release, reservation)
            raise
        if not 200 <= response.status_code < 300:
            await run_in_threadpool(self._answers.release, reservation)
            return response
        body = bytes(response.body).decode()
        await run_in_threadpool(self._answers.keep, reservation, response.status_code, body)
        return response


def route_of(request: Request) -> str:
    return f"{request.method} {request.url.path}"


def key_of(request: Request) -> str:
    key: str = request.headers[_HEADER]
    if not _KEY.fullmatch(key):
        raise Invalid(f"The {_HEADER} is 1 to 255 visible ASCII characters.")
    return key


def _uid(request: Request) -> str:
    if _HEADER not in request.headers:
        return new_uid()
    caller: Caller = request.state.caller
    return repeatable_uid(caller.team_id, route_of(request), key_of(request))


def _repeated(request: Request) -> bool:
    return bool(getattr(request.state, "repeated", False))


# whether the same request came before, and nobody knows what became of it
RepeatedParam = Annotated[bool, Depends(_repeated)]

# the id for what a POST makes: the same one for the same Idempotency-Key
UidParam = Annotated[str, Depends(_uid)]
