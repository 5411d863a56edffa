"""The sink dialect: all rows of a table → a sink. It only translates."""

from fastapi import APIRouter

from refill.api.route import GuardedRoute

router = APIRouter(prefix="/api", route_class=GuardedRoute)
