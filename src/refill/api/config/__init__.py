"""The configuration file over HTTP, as the original's command-line client sends and reads it."""

from refill.api.config import routes
from refill.api.dialects import sinks

router = sinks.router  # with the calls of this room, which are below the same path

__all__ = ["router", "routes"]
