"""The error tree.

RefillError
├── NotFound            nothing there, or not yours: the two look the same
├── Conflict            the state of things forbids it
│   └── InUse           something else still needs it
├── Invalid             the request makes no sense; `fields` says where
│   └── Malformed       it could not even be read
├── Unauthenticated     who are you?
├── Forbidden           you may not
├── RateLimited         not so fast
├── TransientError      worth trying again by itself
│   ├── StoreBusy
│   ├── SourceUnavailable
│   ├── SinkUnavailable
│   ├── DeliveryLost
│   ├── EngineUnavailable
│   └── Stalled
├── TerminalError       pointless to try again before somebody mends it
│   ├── SourceRefused
│   ├── SourceChanged
│   ├── SnapshotLost
│   ├── SinkRefused
│   ├── TooManyRejects
│   ├── TransformFailed
│   └── Misconfigured
└── Superseded          a newer attempt took over: stop, touch nothing
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from refill.domain.slice import Reject


class RefillError(Exception):
    """Every error of ours: a sentence for a person, a code for a program."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class NotFound(RefillError):
    """Nothing of that kind is there for this team."""

    code = "not_found"

    def __init__(self, kind: str, identity: object = None) -> None:
        super().__init__(f"No {kind} was found matching the provided ID or name.")
        self.kind = kind
        self.identity = identity


class Conflict(RefillError):
    """The present state of things forbids it."""

    code = "conflict"

    def __init__(self, message: str, *, field: str | None = None, other: object = None) -> None:
        super().__init__(message)
        self.field = field
        self.other = other


class InUse(Conflict):
    """It cannot go while something else needs it."""

    code = "in_use"


class Invalid(RefillError):
    """The request was understood and is wrong; `fields` maps a field to what is wrong with it."""

    code = "invalid"

    def __init__(
        self,
        message: str,
        fields: Mapping[str, list[str]] | None = None,
        *,
        reason: str | None = None,
    ) -> None:
        super().__init__(message)
        self.fields: dict[str, list[str]] = dict(fields or {})
        self.reason = reason

    @classmethod
    def of(cls, field: str, problem: str, *, reason: str | None = None) -> "Invalid":
        """One field, one problem."""
        return cls(f"{field}: {problem}", {field: [problem]}, reason=reason)


class Malformed(Invalid):
    """The request could not be read: not JSON, a field of the wrong type."""

    code = "malformed"


class Unauthenticated(RefillError):
    """No valid key came with the request. `missing`: none came at all."""

    code = "unauthenticated"

    def __init__(self, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing


class Forbidden(RefillError):
    """The key or the user's role does not allow it."""

    code = "forbidden"


class RateLimited(RefillError):
    """The key used up its requests of this hour, or its team asks too many systems at once."""

    code = "rate_limited"

    def __init__(self, message: str, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class TransientError(RefillError):
    """Trying again later may well work."""

    code = "transient"

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class StoreBusy(TransientError):
    """The metadata store is locked or away."""

    code = "store_busy"


class SourceUnavailable(TransientError):
    """The source could not be reached, or went away while it was read."""

    code = "source_unavailable"


class SinkUnavailable(TransientError):
    """The sink could not be reached, or asked us to come back later."""

    code = "sink_unavailable"


class DeliveryLost(TransientError):
    """What a slice had delivered was not there any more when the backfill was to end."""

    code = "delivery_lost"


class EngineUnavailable(TransientError):
    """Spark lost the task, or is not there."""

    code = "engine_unavailable"


class Stalled(TransientError):
    """It made no progress for longer than the operator lets anything wait."""

    code = "stalled"


class TerminalError(RefillError):
    """Trying again changes nothing until somebody mends it."""

    code = "terminal"


class SourceRefused(TerminalError):
    """The source refused us: password, permission, a database that is not there."""

    code = "source_refused"


class SourceChanged(TerminalError):
    """A table or column that the backfill froze is gone or has another type."""

    code = "source_changed"


class SnapshotLost(TerminalError):
    """The exported snapshot that a table without a key is read under is gone."""

    code = "snapshot_lost"


class SinkRefused(TerminalError):
    """The sink refused what we sent, or refused us."""

    code = "sink_refused"


class TooManyRejects(TerminalError):
    """More rows of a backfill could not be delivered than the pipeline allows."""

    code = "too_many_rejects"

    def __init__(
        self, message: str, rejects: Sequence["Reject"] = (), count: int | None = None
    ) -> None:
        super().__init__(message)
        self.rejects = tuple(rejects)  # met before it was given up, or the first of them
        self.count = len(self.rejects) if count is None else count


class TransformFailed(TerminalError):
    """The pipeline's SQL failed over the data."""

    code = "transform_failed"


class Misconfigured(TerminalError):
    """refill itself is set up in a way that cannot work."""

    code = "misconfigured"


class Superseded(RefillError):
    """A newer attempt holds this slice or target: stop, and change nothing."""

    code = "superseded"
