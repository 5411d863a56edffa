"""The sink dialect: all rows of a table → a sink. It only translates."""

from refill.api.dialects.sinks import (
    backfills,
    databases,
    endpoints,
    notifications,
    sinks,
    slices,
)
from refill.api.dialects.sinks.router import router

__all__ = ["backfills", "databases", "endpoints", "notifications", "router", "sinks", "slices"]
