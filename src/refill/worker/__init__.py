"""The worker: claims, runs, keeps its leases, publishes, finishes."""

from refill.worker.worker import Worker

__all__ = ["Worker"]
