"""What `refill doctor` finds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`ok` None: not needed, only good to know."""

    name: str
    ok: bool | None
    what: str
    mend: str | None = None
