"""The worker: claim → run → heartbeat → publish → finish."""
