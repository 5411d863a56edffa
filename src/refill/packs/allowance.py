"""How many rows a pack may still reject: its slices share what the backfill has left."""

import dataclasses

from refill.connectors.kit.contract import Job
from refill.domain.slice import Receipt


class RejectAllowance:
    """`max_rejects` is the backfill's: each slice of a pack gets what the earlier ones left."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.left = job.spec.max_rejects

    def job(self) -> Job:
        """The job as the next slice gets it."""
        if self.left == self._job.spec.max_rejects:
            return self._job
        spec = self._job.spec.model_copy(update={"max_rejects": self.left})
        return dataclasses.replace(self._job, spec=spec)

    def spend(self, receipt: Receipt) -> None:
        # as the store counts them: a slice that is tried again has rejected nothing yet
        if receipt.fault is None or not receipt.fault.transient:
            self.left = max(0, self.left - receipt.rows_rejected)
