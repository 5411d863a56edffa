"""The metadata store as the rest of refill sees it.

Two implementations of one contract: SQLite embedded, PostgreSQL in production. Timestamps of
backfills and slices, and every lease, are in the database's time; those of pipelines are the
caller's. An integer id of 0 in a record to insert means: the store gives one. A record of another
team is as absent as one that never was: NotFound. A store that is locked or away: StoreBusy.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Protocol

from refill.domain.access import ApiKey, Role, Scope, Team, User
from refill.domain.backfill import CountedBackfill, Origin, Status
from refill.domain.notice import Delivery, Receiver
from refill.domain.pipeline import Database, Destination, HttpEndpoint, Kind, Sink, Transfer
from refill.domain.retry import RetryPolicy
from refill.domain.slice import Fault, Receipt, Reject, Slice, SliceState
from refill.domain.spec import Spec
from refill.domain.table import Table
from refill.store.records import (
    BackfillClaim,
    Finished,
    Gauges,
    NewBackfill,
    Pack,
    PackLimits,
    Page,
    PlannedSlice,
    StoredAnswer,
    StoredCatalogue,
    Swept,
    Unsure,
)


class AccessStore(Protocol):
    def create_team(self, name: str) -> Team: ...
    def list_teams(self) -> tuple[Team, ...]: ...
    def get_team(self, team_id: int) -> Team: ...
    def create_user(self, team_id: int, name: str, role: Role) -> User: ...
    def list_users(self, team_id: int | None = None) -> tuple[User, ...]: ...
    def get_user(self, team_id: int, user_id: int) -> User: ...
    def create_key(
        self,
        *,
        team_id: int,
        user_id: int,
        prefix: str,
        token_hash: str,
        scopes: Collection[Scope],
        expires_at: datetime | None = None,
    ) -> ApiKey: ...
    def list_keys(self, team_id: int | None = None) -> tuple[ApiKey, ...]: ...
    def find_key(self, prefix: str) -> tuple[ApiKey, User] | None:
        """The key with that prefix and its user; revoked and expired ones too."""

    def revoke_key(self, key_id: int) -> ApiKey: ...
    def count_use(self, counted: str, hour: int, count: int) -> int:
        """Adds to what was used in that hour; returns what it was before."""


class PipelineStore(Protocol):
    """Names are unique within a team: a second of the same name is a Conflict on `name`.
    `*_id_or_name` takes either."""

    def insert_database(self, database: Database) -> Database:
        """It has no catalogue yet, whatever the record says."""

    def list_databases(self, team_id: int) -> tuple[Database, ...]: ...
    def get_database(self, team_id: int, id_or_name: str) -> Database: ...
    def update_database(self, database: Database) -> Database:
        """All but the catalogue, which only `save_catalogue` writes."""

    def get_catalogue(self, database_id: str) -> StoredCatalogue: ...
    def save_catalogue(self, database_id: str, tables: Sequence[Table], at: datetime) -> None: ...
    def delete_database(self, team_id: int, database_id: str) -> None:
        """Conflict while a sink or transfer uses it."""

    def insert_endpoint(self, endpoint: HttpEndpoint) -> HttpEndpoint: ...
    def list_endpoints(self, team_id: int) -> tuple[HttpEndpoint, ...]: ...
    def get_endpoint(self, team_id: int, id_or_name: str) -> HttpEndpoint: ...
    def update_endpoint(self, endpoint: HttpEndpoint) -> HttpEndpoint: ...
    def delete_endpoint(self, team_id: int, endpoint_id: str) -> None: ...

    def insert_destination(self, destination: Destination) -> Destination: ...
    def list_destinations(self, team_id: int) -> tuple[Destination, ...]: ...
    def get_destination(self, team_id: int, destination_id: int) -> Destination: ...
    def update_destination(self, destination: Destination) -> Destination: ...
    def delete_destination(self, team_id: int, destination_id: int) -> None:
        """Conflict while a transfer uses it."""

    def insert_sink(self, sink: Sink) -> Sink: ...
    def list_sinks(self, team_id: int) -> tuple[Sink, ...]: ...
    def get_sink(self, team_id: int, id_or_name: str) -> Sink: ...
    def update_sink(self, sink: Sink) -> Sink: ...
    def delete_sink(self, team_id: int, sink_id: str) -> None:
        """Its active backfills are cancelled with it; they stay on record."""

    def insert_transfer(self, transfer: Transfer) -> Transfer:
        """Conflict on `destination_table` when another transfer writes the same target table."""

    def list_transfers(self, team_id: int) -> tuple[Transfer, ...]: ...
    def get_transfer(self, team_id: int, transfer_id: int) -> Transfer: ...
    def update_transfer(
        self, transfer: Transfer, *, schedule_from: datetime | None = None
    ) -> Transfer:
        """`schedule_from`: from when on its schedule counts, where that was changed."""

    def delete_transfer(self, team_id: int, transfer_id: int) -> None: ...
    def list_scheduled_transfers(self) -> tuple[Transfer, ...]:
        """Every team's transfers that have a schedule and are not paused."""

    def mark_schedule_fired(
        self, transfer_id: int, fired_at: datetime, last: datetime | None
    ) -> bool:
        """Compare and set: False when another worker fired it since `last`."""


class BackfillStore(Protocol):
    """Counters are summed in the same query, or as they were frozen at the backfill's end."""

    def insert_backfill(self, new: NewBackfill) -> CountedBackfill:
        """Conflict (`other`: the one in the way) when an active one holds any of `holds`."""

    def get_backfill(self, team_id: int, backfill_id: int) -> CountedBackfill: ...
    def get_backfill_by_uid(self, team_id: int, uid: str) -> CountedBackfill: ...
    def latest_backfill(self, team_id: int, kind: Kind, pipeline_id: str) -> CountedBackfill | None:
        """The newest whose origin is not the schedule."""

    def list_backfills(
        self,
        team_id: int,
        *,
        kind: Kind | None = None,
        pipeline_id: str | None = None,
        statuses: Collection[Status] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[CountedBackfill]:
        """Newest first; those made by a schedule are left out."""

    def find_holder(
        self, kind: Kind, pipeline_id: str, holds: Collection[str]
    ) -> CountedBackfill | None:
        """The active backfill that holds any of these, for a dry run."""

    def pause_backfill(self, team_id: int, backfill_id: int) -> CountedBackfill: ...
    def resume_backfill(self, team_id: int, backfill_id: int) -> CountedBackfill: ...
    def cancel_backfill(
        self, team_id: int, backfill_id: int, user_id: int | None
    ) -> CountedBackfill:
        """Pending slices are cancelled, running ones finish; the record stays."""

    def retry_backfill(
        self, team_id: int, backfill_id: int, dates: Collection[date] | None = None
    ) -> CountedBackfill:
        """Failed slices (of those dates) become pending with a fresh retry budget; one that
        failed before it was planned is planned again. It takes its holds again, else Conflict."""

    def list_slices(
        self,
        backfill_id: int,
        *,
        states: Collection[SliceState] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[Slice]: ...
    def list_rejects(
        self, backfill_id: int, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[tuple[Slice, Reject]]: ...
    def list_runs(
        self,
        team_id: int,
        transfer_id: int,
        *,
        start: datetime,
        end: datetime,
        issues_only: bool = False,
        sort_field: str = "created_time",
        descending: bool = True,
        limit: int = 1000,
        offset: int = 0,
    ) -> tuple[tuple[Slice, Origin], ...]:
        """Runs of a transfer created between `start` and `end`, recurring ones too."""

    def get_run(self, team_id: int, run_id: int) -> tuple[Slice, CountedBackfill]: ...
    def completed_dates(self, transfer_id: int) -> Mapping[date, int]:
        """Dates with a completed run, and the rows that the newest of them delivered."""

    def last_run_days(self, team_id: int) -> Mapping[int, date]:
        """By transfer, the day (UTC) on which it last ran."""

    def failed_dates(self, transfer_id: int) -> frozenset[date]:
        """Dates whose newest run failed."""

    def reserve_answer(
        self, team_id: int, route: str, key: str, body_hash: str
    ) -> StoredAnswer | None:
        """None: the key is this request's now. Else what was kept or reserved before it."""

    def save_answer(self, team_id: int, route: str, key: str, answer: StoredAnswer) -> None:
        """Over the reservation; an answer that is kept stands."""

    def release_answer(self, team_id: int, route: str, key: str) -> None:
        """Of a request that was refused: it may be made again, with another body too."""


class WorkStore(Protocol):
    """The worker's side. A lease that was lost shows as Superseded, or as an id left out."""

    def now(self) -> datetime: ...

    def claim_plan(
        self, worker: str, lease_seconds: float, but_teams: Collection[int] = ()
    ) -> BackfillClaim | None:
        """A CREATED backfill that nobody plans, whose `not_before` has come; of the team that has
        the fewest in work, and of none of `but_teams`."""

    def save_plan(
        self,
        claim: BackfillClaim,
        slices: Iterable[PlannedSlice],
        *,
        rows_estimated: int,
        spec: Spec | None = None,
    ) -> CountedBackfill:
        """All slices in one transaction → SCHEDULED (COMPLETED where there are none and nothing
        is to seal). A backfill paused meanwhile stays paused, planned; one cancelled meanwhile
        raises Superseded. `spec`: what was frozen only now, because the source could not be asked
        when the backfill was submitted (its table had no columns then)."""

    def claim_pack(self, worker: str, limits: PackLimits, lease_seconds: float) -> Pack | None:
        """Slices of one backfill, in order, each with a new attempt. Teams take turns: first the
        one that has the fewest packs running, by its weight. Within a team schedules go before
        history, yet every fourth claim is history's turn; among equals, whoever waited longest.
        Passes over
        paused backfills, `max_concurrent` reached, and targets where a slice of another backfill
        still runs. The first claim makes the backfill RUNNING."""

    def claim_seal(
        self, worker: str, lease_seconds: float, but_teams: Collection[int] = ()
    ) -> BackfillClaim | None:
        """A backfill that `seals`, all of whose slices are completed, and that has not ended. One
        that is paused too: there is nothing left that could wait."""

    def end_claim(
        self, claim: BackfillClaim, fault: Fault | None, policy: RetryPolicy
    ) -> CountedBackfill:
        """A plan that failed, or a seal that was done (`fault` None → COMPLETED) or failed.
        Transient faults within the policy leave it for a later claim, else FAILED."""

    def take_back(
        self, claim: BackfillClaim, lost: Sequence[Receipt], policy: RetryPolicy
    ) -> CountedBackfill:
        """Instead of a seal: completed slices whose delivery is not there any more become pending
        again, or failed, by the policy, a failure counted for each. The claim ends."""

    def heartbeat(
        self,
        worker: str,
        slices: Collection[tuple[int, int]],
        claims: Collection[tuple[int, int]],
        lease_seconds: float,
    ) -> tuple[frozenset[int], frozenset[int]]:
        """Extends (slice id, attempt) and (backfill id, attempt); returns the ids of both that
        are no longer held."""

    def finish_slices(
        self, backfill_id: int, receipts: Sequence[Receipt], policy: RetryPolicy
    ) -> Finished:
        """DONE → completed; FAILED → pending later, or failed, by the policy; UNSTARTED → pending
        again, no failure counted. Each conditional on its attempt: else nothing changes, and its
        id is in `superseded`. So a SUPERSEDED execution whose attempt still holds the slice was
        overtaken by nothing that the store knows of, and counts as FAILED: else it would go round
        for ever. When the last slice ends, the backfill ends in the same transaction, with its
        counters frozen, unless it is to be sealed. The rejects are stored with it; a slice's
        earlier ones go."""

    def any_quarantined(self) -> bool:
        """Whether a slice waits for a claim `alone`: it ran at two deaths of an engine."""

    def suspect_slices(self, held: Collection[tuple[int, int]], policy: RetryPolicy) -> int:
        """What ran when an engine died: pending again without a failure; what ran alone then has
        failed."""

    def release_slices(self, held: Collection[tuple[int, int]]) -> int:
        """A clean stop: pending again, nothing added to `failures`."""

    def sweep(self, policy: RetryPolicy) -> Swept:
        """Mends what a crash left: slices whose lease ran out (a failure each: a slice that kills
        its worker must not do so for ever), backfills whose slices have all ended."""

    def list_unsure(self, sink_types: Collection[str]) -> tuple[Unsure, ...]:
        """Of active backfills to these sinks, paused ones too: slices that were attempted and are
        pending again. While a backfill goes on, only those of whose attempt something is wrong:
        the others were handed back unstarted, as far as anybody knows, and run soon."""

    def record_delivered(self, backfill_id: int, receipts: Sequence[Receipt]) -> Finished:
        """What a sink says that it has, whoever delivered it: completed, if the slice is still
        pending and the attempt still its last. The backfill ends as with `finish_slices`."""

    def prune(self, retention_days: int) -> int:
        """Slices, rejects and stored answers of long-ended backfills go."""

    def gauges(self) -> Gauges: ...


class NoticeStore(Protocol):
    """What people are told. Events are written where their cause is, by the store itself."""

    def insert_receiver(self, receiver: Receiver) -> Receiver: ...
    def update_receiver(self, receiver: Receiver) -> Receiver: ...
    def list_receivers(self, team_id: int) -> tuple[Receiver, ...]: ...
    def get_receiver(self, team_id: int, receiver_id: str) -> Receiver: ...
    def delete_receiver(self, team_id: int, receiver_id: str) -> None: ...
    def list_deliveries(self, team_id: int, limit: int) -> tuple[Delivery, ...]:
        """Newest first."""

    def note_troubles(self, stalled_seconds: float, failures: int) -> int:
        """Events for active backfills of which nothing moved for so long, or a slice of which
        failed so often and is tried again; each once, until it moves again."""

    def spread_events(self) -> int:
        """Deliveries to everybody who is to hear of an event, in one transaction with its mark."""

    def claim_deliveries(
        self, limit: int, lease_seconds: float, busy: Collection[str]
    ) -> tuple[tuple[Delivery, Receiver | None], ...]:
        """Those that are due, one per receiver and none to `busy` ones; nobody else gets them
        while the lease lasts."""

    def end_delivery(
        self, delivery_id: int, error: str | None, retry_seconds: float | None
    ) -> None:
        """Delivered; or tried again in so many seconds; without any, given up."""


class Store(AccessStore, PipelineStore, BackfillStore, WorkStore, NoticeStore, Protocol):
    def migrate(self) -> None:
        """To the newest schema; an empty store also gets team 1 and user 1, its owner."""

    def check(self) -> dict[str, Any]:
        """What `doctor` and /health say of it: {"backend", "version", "schema", …}; raises
        StoreBusy when it cannot be reached."""

    def close(self) -> None: ...
