"""What a connector is. The data between any source and any sink is an iterator of Arrow batches.

A connector is a record, `CONNECTOR`, that `registry.py` finds, ours or another package's. Source
and Sink objects are opened both on the worker and inside Spark tasks, from options and a Context
that travel by pickle; they hold connections only after first use, and `close` drops them. One
thread at a time uses an object, but another may close it under its hands: what was going on then
ends with an error, and the next use connects anew.
"""

import builtins
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, SecretStr

from refill.connectors.kit.addresses import NetworkPolicy
from refill.domain.errors import Invalid, Misconfigured
from refill.domain.pipeline import Kind
from refill.domain.slice import Dated, Extent, Receipt, Reject, Slice, Ticket, Whole
from refill.domain.spec import DatedRead, KeyedRead, QueryRead, Read, SinkSpec, Spec, TransferSpec
from refill.domain.stored import Stored, StoredObject
from refill.domain.table import Column, Table
from refill.planning.bounds import Bounds
from refill.planning.plan import PlannedExtent

if TYPE_CHECKING:
    import pyarrow as pa


OURS = "refill-backfills"  # the distribution that our own connectors come with


class Guarantee(StrEnum):
    REPLACE = "replace"
    EXACTLY_ONCE = "exactly once"
    KEYED = "keyed"
    AT_LEAST_ONCE = "at least once"


class Options(BaseModel):
    """The typed fields of a connector, as its users name them. Secrets are SecretStr.

    `live` names the fields that say how to reach the system: they are read when a slice runs.
    All others say what is written, and are frozen into the backfill.

    `secret_address` names those of them that say whom the secrets are shown to, and how well
    guarded on the way: a stored secret does not follow where one of them leads now.
    """

    # an error's text reaches logs and answers, and a value may be a secret
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)
    live: ClassVar[frozenset[str]] = frozenset()
    secret_address: ClassVar[frozenset[str] | None] = (
        None  # None: every live field that is no secret
    )

    def where_secrets_go(self) -> dict[str, Any]:
        """Whom the secrets are shown to; two that are equal may be shown the same ones."""
        named = self.live if self.secret_address is None else self.secret_address
        plain = {name: getattr(self, name) for name in named}
        return {name: value for name, value in plain.items() if not isinstance(value, SecretStr)}

    def shown_masked(self) -> dict[str, Any]:
        """What an answer says of it: secrets are masked by their type."""
        return self.model_dump(mode="json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the operator decides, for connectors that touch the machine or the network."""

    team_id: int
    files_root: str
    allow_private_hosts: bool = False
    allowed_networks: str = ""
    refused_networks: str = ""

    @property
    def network(self) -> NetworkPolicy:
        """Which addresses may be connected to: every connector asks it, for every connection."""
        return NetworkPolicy(self.allow_private_hosts, self.allowed_networks, self.refused_networks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The backfill that a slice belongs to, as a sink needs to know it."""

    backfill_id: int
    backfill_uid: str
    spec: Spec

    @property
    def sink_spec(self) -> SinkSpec:
        """For systems that take messages, which only sinks deliver."""
        if not isinstance(self.spec, SinkSpec):
            raise Misconfigured(f"{self.spec.sink_type} takes what a sink delivers, and no dates.")
        return self.spec

    @property
    def transfer_spec(self) -> TransferSpec:
        """For systems that take dates, which only transfers deliver."""
        if not isinstance(self.spec, TransferSpec):
            raise Misconfigured(f"{self.spec.sink_type} takes the dates of a transfer only.")
        return self.spec

    def lasting_target(self, part: Ticket | Slice) -> str:
        """Its target, for fences that a system keeps. They compare within one store: one
        that was made anew counts from one again, over what an older one left."""
        return f"{part.target}@{self.spec.database_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a sink did with the batches that it was given."""

    rows_delivered: int
    bytes_written: int = 0
    rows_rejected: int = 0
    rejects: tuple[Reject, ...] = ()
    staged: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    # an earlier execution of the slice was delivered and stands: these are its counts, and the
    # batches were not taken
    delivered_before: bool = False


class Source(ABC):
    """Reads. Its driver's errors leave it as SourceUnavailable, SourceRefused, SourceChanged."""

    @abstractmethod
    def test(self) -> None:
        """Raises what a person should read when it cannot be used."""

    def concerns(self) -> tuple[str, ...]:
        """What its owner should know though it works: each a clause, "its role may write"."""
        return ()

    @abstractmethod
    def catalogue(self) -> tuple[Table, ...]:
        """Every relation that may be read."""

    @abstractmethod
    def find_table(self, schema: str, name: str) -> Table | None:
        """A live look at one relation, two seconds at most."""

    def describe_query(self, query: str) -> tuple[Column, ...]:
        """The columns that a query with a bound :date returns, without running it; Invalid on
        `query` when there is something wrong with it. For sources with a `query_dialect`."""
        raise Invalid.of("query", "cannot be read here: this source has tables only.")

    @abstractmethod
    def check(self, read: Read) -> None:
        """SourceChanged when what was frozen is no longer so; `kit/frozen.py` compares columns.
        Called when a backfill is planned: `read` finds out for itself what has changed since."""

    @abstractmethod
    def bounds(self, read: KeyedRead, boundaries_wanted: int) -> Bounds:
        """Size estimate and a sorted sample of keys, of what lies between the start and the end
        where the read has them: a key outside would be a slice outside. Never counts, sorts or
        scans the table. Without sort columns, a size alone."""

    def cut(
        self, read: KeyedRead, bounds: Bounds, slices: int, snapshot: str | None
    ) -> tuple[PlannedExtent, ...]:
        """A table without a key in about so many parts of the source's own, for tables whose
        `keyless` says that it can. `snapshot`: what `hold_snapshot` returned; None: a preview.
        Extents are stored as JSON, and read by another process."""
        return (PlannedExtent(extent=Whole(), rows_estimated=bounds.rows_estimated),)

    @abstractmethod
    def schema(self, read: Read) -> "pa.Schema":
        """The schema of the batches that `read` yields; needs no connection."""

    @abstractmethod
    def read(self, read: Read, extent: Extent) -> Iterator["pa.RecordBatch"]:
        """The rows of one slice. Closing the iterator stops the reading."""

    def read_dates(
        self, read: DatedRead | QueryRead, dates: Sequence[date]
    ) -> Iterator[tuple[date, Iterator["pa.RecordBatch"]]]:
        """Several dates in the given order; a source overrides it to ask once for all of them.
        Every date comes, empty ones too; each inner iterator is used up before the next."""
        for day in dates:
            yield day, self.read(read, Dated(date=day))

    def look_up(self, query: str, key: Column, keys: Sequence[str]) -> "pa.Table":
        """What a query with :keys, values of the column `key` as text, returns; it only reads, and
        not for long. It may be asked while `read` is under way."""
        raise Misconfigured("This source cannot enrich messages; leave the enrichment out.")

    def hold_snapshot(self, read: KeyedRead) -> str | None:
        """Exports a snapshot to read the table under, keeps the table from being rewritten, and
        holds both until `close`; None where there is no such thing."""
        return None

    @abstractmethod
    def close(self) -> None: ...


class Sink(ABC):
    """Writes. Its driver's errors leave it as SinkUnavailable, SinkRefused or Superseded.

    `write` runs in the Spark task, everything else on the worker.
    """

    @abstractmethod
    def test(self) -> None:
        """Raises what a person should read when it cannot be used."""

    def prepare(self, job: Job, schema: "pa.Schema") -> None:  # noqa: B027
        """Once per worker before the first slice of a backfill; safe to do again."""

    def stage(self, job: Job, tickets: Sequence[Ticket]) -> list[str | None]:
        """Makes the place that each ticket stages into, and removes what older attempts of the
        same target left, so that a zombie finds nothing to write into. What it returns arrives
        as the ticket's `staging`. A ticket that is older itself raises nothing here, where it
        would stop the others of its pack: its `write` does."""
        return [None] * len(tickets)

    @abstractmethod
    def write(
        self, job: Job, ticket: Ticket, schema: "pa.Schema", batches: Iterator["pa.RecordBatch"]
    ) -> Written:
        """Delivers the slice, or stages it. Pulls the next batch only when it has room. The same
        attempt may run twice, with two nonces; what the batches raise passes through."""

    def delivered(self, job: Job, tickets: Sequence[Ticket]) -> list[Written | None]:
        """What the sink's own markers say of slices whose end nobody heard of; None: no marker.
        Markers may fade after days: ask before, also for a backfill that is paused."""
        return [None] * len(tickets)

    def publish(self, job: Job, deliveries: Sequence[tuple[Ticket, Receipt]]) -> None:  # noqa: B027
        """Makes what was staged visible, each slice at once. Safe to do again. Superseded when a
        newer attempt holds any of them: they are then published again, one by one."""

    def missing(self, job: Job, slices: Sequence[Slice]) -> list[Slice]:
        """Of slices that were delivered, those that are not there any more, by a cheap look: asked
        before the last word is said, for the kinds in `seals`. They are delivered again."""
        return []

    def seal(self, job: Job) -> None:  # noqa: B027
        """Every slice is done: the last step (a pointer, a marker). Safe to do again."""

    def discard(self, job: Job) -> None:  # noqa: B027
        """The backfill was cancelled: removes what was never visible. One that failed keeps it,
        since its failed slices may be tried again."""

    @abstractmethod
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """An option of a sink or destination that names an object which its team stores.

    The object's id is kept, so that it may get another name. It is looked up when a slice runs:
    what it holds, secrets too, is in no backfill and may be mended meanwhile.
    """

    to: Stored
    # (options, object) → the options with what the object holds in them
    merge: Callable[[Mapping[str, Any], Any], dict[str, Any]]
    instead: str | None = None  # the option that may take its place: one of the two is required


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """A system refill knows, as data: forms, docs and validation derive from it."""

    type: str
    title: str
    options_model: "builtins.type[Options]"
    # which roles it has; `sink` in /api/sinks, `destination` in /v1/…/destinations
    is_source: bool = False
    is_sink: bool = False
    is_destination: bool = False
    guarantee: Guarantee | None = None
    guarantee_note: str = ""
    # for which kinds of backfills it has a last step to do once every slice is done
    seals: frozenset[Kind] = frozenset()
    fading_markers: bool = False  # `delivered` knows, for some days, what lost attempts delivered
    # what two destinations have in common when a transfer's table is the same table in both,
    # from their options and the table's name; None: all options that say where, and the name
    target_of: Callable[[Any, str], tuple[object, ...]] | None = None
    # the option that names a place which a sink has for itself: a backfill replaces what is there
    alone_at: str | None = None
    # the fields of a sink's routing, where each message goes; None: it takes rows, not messages
    routes: tuple[str, ...] | None = None
    references: Mapping[str, Reference] = field(default_factory=dict)  # by the option's name
    former_types: tuple[str, ...] = ()  # what it was called before; still understood when sent
    default_batch_size: int = 1  # messages per request where a sink does not say
    # the module of its driver, where not everybody has it: without it nothing is opened or made
    driver: str | None = None
    extra: str | None = None  # the extra of the distribution that brings the driver
    distribution: str = OURS  # for those of other packages the registry knows it
    # what its first use in a task imports, by far the most of what a small slice takes: loaded
    # ahead, where it is installed
    heavy_modules: tuple[str, ...] = ()
    # the SQL that its queries are in, by the parser's name for it; None: it takes no queries
    query_dialect: str | None = None
    open_source: Callable[[Any, Context], Source] | None = None  # (options, context)
    open_sink: Callable[[Any, Context], Sink] | None = None

    def resolved(
        self, options: Mapping[str, Any], find: Callable[[Stored, str], StoredObject]
    ) -> dict[str, Any]:
        """The options with what they refer to in them; `find` gets a kind and an id or name."""
        found = dict(options)
        for option, reference in self.references.items():
            if (name := found.get(option)) is not None:
                found = reference.merge(found, find(reference.to, str(name)))
        return found
