"""The router of the sink dialect, and what its routes declare."""

from typing import Any

from fastapi import APIRouter

from refill.api.document import SinkError, guarded
from refill.api.route import GuardedRoute
from refill.domain.access import Scope

router = APIRouter(prefix="/api", route_class=GuardedRoute)


def needs(scope: Scope) -> dict[str, Any]:
    """The keywords of a route decorator."""
    return guarded(scope, error=SinkError)
