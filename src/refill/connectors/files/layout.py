"""Where things lie: the names of folders and files, and what can be read off them.

<path>/<destination table>/date=2024-02-29/data.parquet        a transfer's date
<path>/<schema>.<table> -> _<schema>.<table>.<origin>.<n>      a sink's set: the pointer
<path>/_<schema>.<table>.<origin>.<n>/slice-00000.parquet      the generation of backfill n
…/_<unit>~<fence>.<attempt>.<origin>.<n>.<nonce>/              what an attempt stages into
"""

import hashlib
import re
from dataclasses import dataclass

from refill.connectors.kit.contract import Job
from refill.domain.slice import Dated, Slice, Ticket
from refill.domain.spec import SinkSpec, Spec, TransferSpec

_UNSAFE = re.compile(r"[%/\\\x00-\x1f\x7f]")
_STAGING = re.compile(r"_(?P<unit>[^~]+)~(\d+)\.(\d+)\.([0-9a-f]{8})\.(\d+)\.([0-9A-Za-z-]+)")
_LONGEST_RANGE = 80


def file_name(text: str) -> str:
    """A name of the database's as a name in a folder: what cannot stand there is percent-coded."""
    safe = _UNSAFE.sub(lambda match: f"%{ord(match.group()):02X}", text)
    if safe.startswith(("_", ".")):
        safe = f"%{ord(safe[0]):02X}{safe[1:]}"
    return safe


def origin(spec: Spec) -> str:
    """Fences and backfills' numbers only compare within one store, whose ids these are: a store
    made anew counts from one again, over files that an older one left."""
    identity = spec.sink_id if isinstance(spec, SinkSpec) else spec.database_id
    return hashlib.sha256(identity.encode()).hexdigest()[:8]


def set_name(spec: SinkSpec) -> str:
    """A sink's set of files. A partial backfill has one of its own, beside the table's."""
    read = spec.read
    # a dot inside either name must not look like the one between them
    names = (read.table.schema_name, read.table.name)
    name = ".".join(file_name(part).replace(".", "%2E") for part in names)
    if not read.partial:
        return name
    bounds = f"{read.start_position or ''}..{read.end_position or ''}"
    if read.sort_columns != read.table.key:
        bounds = f"{','.join(read.sort_columns)}:{bounds}"
    if len(file_name(bounds).encode()) > _LONGEST_RANGE:
        bounds = hashlib.sha256(bounds.encode()).hexdigest()[:16]
    return f"{name}@{file_name(bounds)}"


@dataclass(frozen=True, slots=True)
class Generation:
    """One backfill's files of a set. Of one origin, the higher backfill is the newer."""

    set_name: str
    origin: str
    backfill_id: int

    @classmethod
    def of(cls, job: Job) -> "Generation":
        return cls(set_name(job.sink_spec), origin(job.spec), job.backfill_id)

    @classmethod
    def parse(cls, name: str | None) -> "Generation | None":
        parts = (name or "").rsplit(".", 2)
        if len(parts) != 3 or not parts[0].startswith("_") or not parts[2].isdigit():
            return None
        return cls(parts[0][1:], parts[1], int(parts[2]))

    @property
    def name(self) -> str:
        return f"_{self.set_name}.{self.origin}.{self.backfill_id:08d}"

    def overtaken_by(self, other: "Generation | None") -> bool:
        return other is not None and (
            other.origin == self.origin and other.backfill_id > self.backfill_id
        )


@dataclass(frozen=True, slots=True)
class Staging:
    """The folder that one claim of a unit stages into; empty, it stays as the unit's fence."""

    unit: str
    fence: int
    attempt: int
    origin: str
    backfill_id: int
    nonce: str

    @classmethod
    def of(cls, job: Job, ticket: Ticket) -> "Staging":
        return cls(
            unit_name(ticket),
            ticket.fence,
            ticket.attempt,
            origin(job.spec),
            job.backfill_id,
            ticket.nonce,
        )

    @classmethod
    def parse(cls, name: str) -> "Staging | None":
        match = _STAGING.fullmatch(name)
        if match is None:
            return None
        unit, fence, attempt, source, backfill_id, nonce = match.groups()
        return cls(unit, int(fence), int(attempt), source, int(backfill_id), nonce)

    @property
    def name(self) -> str:
        order = f"{self.fence}.{self.attempt}.{self.origin}.{self.backfill_id}"
        return f"_{self.unit}~{order}.{self.nonce}"

    def overtaken_by(self, other: "Staging") -> bool:
        return (
            other.unit == self.unit
            and other.origin == self.origin
            and (other.fence, other.attempt) > (self.fence, self.attempt)
        )


def unit_name(part: Ticket | Slice) -> str:
    return "data" if isinstance(part.extent, Dated) else f"slice-{part.index:05d}"


def base_names(path: str, spec: Spec) -> tuple[str, ...]:
    """The folder below the team's root that holds a transfer's dates, or a sink's sets."""
    names = tuple(path.split("/"))
    if isinstance(spec, TransferSpec):
        return (*names, file_name(spec.destination_table))
    return names


def leaf_name(job: Job, extent: object) -> str:
    """The folder below it that the file of a slice ends up in."""
    if isinstance(extent, Dated):
        return f"date={extent.date.isoformat()}"
    return Generation.of(job).name
