"""The API: two dialects, and what operators look at."""

from fastapi import FastAPI

from refill import __version__
from refill.api import config, operations
from refill.api.dialects import transfers
from refill.api.document import install_document
from refill.api.errors import install_error_handlers
from refill.api.gate import Gate
from refill.api.rate import SHOWN_WITHOUT_LIMIT, RateLimiter
from refill.api.route import KeptAnswers
from refill.api.transport import Transport
from refill.clock import Clock, system_clock
from refill.service import Service
from refill.settings import Settings


def create_app(service: Service, settings: Settings, clock: Clock = system_clock) -> FastAPI:
    # without FastAPI's own pages: they run scripts of another host in the API's origin
    app = FastAPI(
        title="refill",
        version=__version__,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service
    # an embedded store has one API process, and a write for each request would be felt
    share = service.access.use if settings.store_url else None
    app.state.gate = Gate(
        service=service,
        limiter=RateLimiter(settings.rate_limit_per_hour, share),
        strangers=RateLimiter(settings.wrong_keys_per_hour, share),
        clock=clock,
    )
    app.state.answers = KeptAnswers(service.answers)
    for each in (operations.router, config.router, transfers.router):
        # not `include_router`: it would build every route once more
        app.router.routes.extend(each.routes)
    install_error_handlers(app)
    install_document(app, service)
    app.add_middleware(
        Transport,
        body_limit_bytes=settings.body_limit_bytes,
        body_seconds=settings.body_seconds,
        rate_limit=settings.rate_limit_per_hour or SHOWN_WITHOUT_LIMIT,
    )
    return app
