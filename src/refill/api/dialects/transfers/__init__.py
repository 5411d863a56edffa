"""The transfer dialect: one run per date of a range → a destination. It only translates."""

# `sources` before `transfers`: its fixed paths would otherwise be taken for a transfer's id
from refill.api.dialects.transfers import backfills, destinations, runs, sources, transfers
from refill.api.dialects.transfers.router import router

__all__ = ["backfills", "destinations", "router", "runs", "sources", "transfers"]
