"""The router that every noun of the transfer dialect hangs its routes on."""

from typing import Any

from fastapi import APIRouter

from refill.api.document import TransferError, guarded
from refill.api.route import GuardedRoute
from refill.domain.access import Scope

router = APIRouter(prefix="/v1/teams/{team_id}", route_class=GuardedRoute)

IN_USE = {409: "something else still uses it"}


def needs(scope: Scope, *, also: dict[int, str] | None = None) -> dict[str, Any]:
    """`@router.get("/…", **needs(Scope.TRANSFERS_READ))`"""
    return guarded(scope, error=TransferError, also=also)
