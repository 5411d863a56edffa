"""The transfer dialect: one run per date of a range → a destination. It only translates."""

from fastapi import APIRouter

from refill.api.route import GuardedRoute

router = APIRouter(prefix="/v1/teams/{team_id}", route_class=GuardedRoute)
