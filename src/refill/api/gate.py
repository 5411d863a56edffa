"""Who comes in: the key, its hourly allowance, the team in the path, the scope of the route."""

import re
from typing import Annotated

from fastapi import Depends, Request

from refill.api.rate import RateLimiter
from refill.clock import Clock
from refill.domain.access import Caller, Scope
from refill.domain.errors import Forbidden, NotFound, RateLimited, Unauthenticated
from refill.service import Service

MAX_ID = 2**63 - 1
_NUMBER = re.compile(r"[0-9]{1,19}")


class Gate:
    """Admits a request or says why not. Another team's id looks like one that is not there."""

    def __init__(
        self, *, service: Service, limiter: RateLimiter, strangers: RateLimiter, clock: Clock
    ) -> None:
        self._service = service
        self._limiter = limiter
        self._strangers = strangers
        self._clock = clock

    def admit(self, request: Request, needed: Scope) -> Caller:
        try:
            caller = self._service.access.authenticate(request.headers.get("authorization"))
        except Unauthenticated as exc:
            if not exc.missing:
                self._count_stranger(request)
            raise
        allowance = self._limiter.take(f"key {caller.key_id}", self._clock())
        request.state.caller = caller
        request.state.allowance = allowance
        if allowance.retry_after_seconds is not None:
            raise RateLimited(
                f"The key used up its {allowance.limit} requests of this hour; "
                f"try again in {allowance.retry_after_seconds} s.",
                allowance.retry_after_seconds,
            )
        team = str(request.path_params.get("team_id", caller.team_id))
        # what is no number at all is left to the route's own validation
        if _NUMBER.fullmatch(team) and caller.team_id != int(team) <= MAX_ID:
            raise NotFound("team", team)
        if not caller.allows(needed):
            raise Forbidden(
                f"This needs the scope {needed.value}, and a role that allows it; "
                f"the key's user is {caller.role.value}."
            )
        return caller

    def _count_stranger(self, request: Request) -> None:
        """By address. A right key from there is let in all the same: behind a proxy, everybody has
        one address."""
        address = request.client.host if request.client else "nobody"
        tried = self._strangers.take(f"address {address}", self._clock())
        if tried.retry_after_seconds is not None:
            raise RateLimited(
                f"{tried.limit} wrong keys came from this address in this hour; "
                f"try again in {tried.retry_after_seconds} s.",
                tried.retry_after_seconds,
            )


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


# what routes ask for
CallerParam = Annotated[Caller, Depends(_caller)]
ServiceParam = Annotated[Service, Depends(_service)]
