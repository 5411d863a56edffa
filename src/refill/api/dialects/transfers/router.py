"""The router that every noun of the transfer dialect hangs its routes on."""

from collections.abc import Callable
from typing import Any, NoReturn

from fastapi import APIRouter

from refill.api.document import TransferError, guarded
from refill.api.errors import MethodNotAllowed
from refill.api.route import GuardedRoute
from refill.domain.access import Scope

router = APIRouter(prefix="/v1/teams/{team_id}", route_class=GuardedRoute)

IN_USE = {409: "something else still uses it"}

# paths with a word where others have an id
_FIXED = {
    "/transfers/available-sources": "GET",
    "/transfers/available-options": "GET",
    "/transfers/validations": "POST",
    "/destinations/test-connection": "POST",
}


def needs(scope: Scope, *, also: dict[int, str] | None = None) -> dict[str, Any]:
    """`@router.get("/…", **needs(Scope.TRANSFERS_READ))`"""
    return guarded(scope, error=TransferError, also=also)


def _refusal(allowed: str) -> Callable[[], NoReturn]:
    def refuse() -> NoReturn:
        raise MethodNotAllowed(allowed)

    return refuse


# before all others: another method on such a path would else be taken for one on an id
for _path, _allowed in _FIXED.items():
    router.add_api_route(
        _path,
        _refusal(_allowed),
        methods=sorted({"GET", "POST", "PUT", "PATCH", "DELETE"} - {_allowed}),
        include_in_schema=False,
        response_model=None,
        **needs(Scope.TRANSFERS_READ),
    )
