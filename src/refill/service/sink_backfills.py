"""Backfills of sinks: one table, delivered again."""

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from refill.connectors.kit.contract import Source
from refill.domain.backfill import Backfill, CountedBackfill, Move, Origin, Status
from refill.domain.errors import Conflict, Invalid, NotFound, TerminalError, TransientError
from refill.domain.pipeline import Database, Kind, Selection, Sink
from refill.domain.slice import Reject, Slice
from refill.domain.spec import SinkSpec
from refill.domain.table import Table, TableKind
from refill.planning.plan import PlannedExtent, PlanSettings, plan_table
from refill.service.backfills import Backfills
from refill.service.catalogue import Catalogue, pick
from refill.service.identity import is_uid
from refill.service.selection import choose_table, covers, named_tables
from refill.service.sink_freezer import BackfillRequest, SinkFreezer
from refill.store.port import Store
from refill.store.records import NewBackfill, Page

INITIAL_REASON = "initial backfill of the sink"


class State(StrEnum):
    """A backfill's state as users of sinks know it."""

    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @classmethod
    def of(cls, status: Status) -> "State":
        unstarted = status in (Status.CREATED, Status.SCHEDULED, Status.RUNNING)
        return cls.ACTIVE if unstarted else cls(status.value)

    @property
    def statuses(self) -> frozenset[Status]:
        return frozenset(status for status in Status if State.of(status) is self)


# where a user may lead it, and what that is
MOVES: Mapping[State, Mapping[State, Move]] = {
    State.ACTIVE: {State.PAUSED: Move.PAUSE, State.CANCELLED: Move.CANCEL},
    State.PAUSED: {State.ACTIVE: Move.RESUME, State.CANCELLED: Move.CANCEL},
    State.FAILED: {State.ACTIVE: Move.RETRY, State.CANCELLED: Move.CANCEL},
    State.COMPLETED: {},
    State.CANCELLED: {},
}
_LEADS_TO = {Move.PAUSE: State.PAUSED, Move.CANCEL: State.CANCELLED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a request would do, as the source stands now. `blocked_by`: the one in its way."""

    table: str
    sort_columns: tuple[str, ...]
    rows_estimated: int
    planned: tuple[PlannedExtent, ...]
    blocked_by: Backfill | None


class SinkWords:
    """How users of sinks are told no."""

    def in_the_way(self, wanted: NewBackfill | Backfill, other: Backfill) -> Conflict:
        table, state = wanted.spec.read.name, State.of(other.status).value
        return Conflict(
            f"a backfill of {table} is already under way for this sink: {other.uid}, which is "
            f"{state}; wait for it or cancel it first",
            field="table",
            other=other,
        )

    def refused(self, backfill: Backfill, move: Move) -> Invalid:
        return _not_settable(State.of(backfill.status), _LEADS_TO.get(move, State.ACTIVE))


class SinkBackfills:
    """What can be done to backfills of sinks."""

    def __init__(
        self,
        *,
        backfills: Backfills,
        store: Store,
        freezer: SinkFreezer,
        catalogue: Catalogue,
        plan_settings: PlanSettings,
    ) -> None:
        self._backfills = backfills
        self._store = store
        self._freezer = freezer
        self._catalogue = catalogue
        self._plan_settings = plan_settings
        self._words = SinkWords()

    def submit(
        self, team_id: int, sink: str, request: BackfillRequest, *, uid: str, user_id: int | None
    ) -> CountedBackfill:
        """`uid` names what a repeated request made the first time."""
        found = self._store.get_sink(team_id, sink)
        return self._backfills.submit(
            team_id,
            uid,
            lambda: self._new(found, self._freezer.freeze(found, request), request, uid, user_id),
            self._words,
        )

    def prepare_initial(self, sink: Sink, *, user_id: int | None) -> tuple[NewBackfill, ...]:
        """One per table that the sink covers, all of them checked and none stored. The sink need
        not be stored either; those that a repeated request made already are left out."""
        names = named_tables(sink.selection)
        database = self._store.get_database(sink.team_id, sink.database_id)
        tables: tuple[Table, ...] = ()
        try:
            tables = self._catalogue.read_now(database)
        except (TransientError, TerminalError) as exc:
            if names is None:
                raise Invalid.of(
                    "initial_backfill",
                    f"the tables of {database.name} are not known, and cannot be listed now: "
                    f"{exc.message}",
                    reason=exc.code,
                ) from exc
        if names is None:
            names = _initial_tables(sink.selection, tables)
        uids = {name: str(uuid.uuid5(uuid.UUID(sink.id), name)) for name in names}
        return tuple(
            self._new_initial(sink, database, name, pick(tables, name), uid, user_id)
            for name, uid in uids.items()
            if self._backfills.find(sink.team_id, uid) is None
        )

    def prepare_asked(
        self, sink: Sink, requests: Iterable[BackfillRequest], *, user_id: int | None
    ) -> tuple[NewBackfill, ...]:
        """As `prepare_initial`, for the tables that are named, with the bounds that they have."""
        database = self._store.get_database(sink.team_id, sink.database_id)
        asked = {choose_table(sink, request.table): request for request in requests}
        uids = {name: str(uuid.uuid5(uuid.UUID(sink.id), name)) for name in asked}
        return tuple(
            self._new_initial(sink, database, name, None, uid, user_id, asked[name])
            for name, uid in uids.items()
            if self._backfills.find(sink.team_id, uid) is None
        )

    def insert_initial(self, prepared: Iterable[NewBackfill]) -> None:
        """What `prepare_initial` made, once its sink is stored."""
        for new in prepared:
            self._backfills.insert(new, self._words)

    def preview(self, team_id: int, sink: str, request: BackfillRequest) -> Preview:
        """Creates nothing: the same bounds and the same plan as the worker's."""
        found = self._store.get_sink(team_id, sink)
        spec = self._freezer.freeze(found, request)
        read = spec.read
        settings = self._plan_settings.paced(spec.max_rows_per_second)
        database = self._store.get_database(team_id, found.database_id)

        def look(source: Source) -> tuple[int, tuple[PlannedExtent, ...]]:
            if not read.fields:
                source.test()  # says why it could not be looked up
            bounds = source.bounds(read, settings.boundaries_wanted)
            planned = plan_table(
                read, bounds, settings, lambda slices: source.cut(read, bounds, slices, None)
            )
            return bounds.rows_estimated, planned

        try:
            rows_estimated, planned = self._catalogue.ask(database, look)
        except (TransientError, TerminalError) as exc:
            raise Invalid.of("table", exc.message, reason=exc.code) from exc
        return Preview(
            table=read.name,
            sort_columns=read.sort_columns,
            rows_estimated=rows_estimated,
            planned=planned,
            blocked_by=self._store.find_holder(Kind.SINK, found.id, [read.name]),
        )

    def get_of_team(self, team_id: int, uid: str) -> CountedBackfill:
        """NotFound too when it is a transfer's: those have numbers, and another dialect."""
        if not is_uid(uid):
            raise NotFound("backfill", uid)
        backfill = self._store.get_backfill_by_uid(team_id, uid.lower())
        if backfill.kind is not Kind.SINK:
            raise NotFound("backfill", uid)
        return backfill

    def get_of_sink(self, team_id: int, sink: str, uid: str) -> CountedBackfill:
        """NotFound says which of the two is not there."""
        found = self._store.get_sink(team_id, sink)
        backfill = self.get_of_team(team_id, uid)
        if backfill.pipeline_id != found.id:
            raise NotFound("backfill", uid)
        return backfill

    def list_of_sink(
        self, team_id: int, sink: str, *, limit: int | None, cursor: str | None
    ) -> Page[CountedBackfill]:
        found = self._store.get_sink(team_id, sink)
        return self._store.list_backfills(
            team_id, kind=Kind.SINK, pipeline_id=found.id, limit=limit, cursor=cursor
        )

    def list_of_team(
        self, team_id: int, *, states: Collection[State], limit: int | None, cursor: str | None
    ) -> Page[CountedBackfill]:
        statuses = frozenset().union(*(state.statuses for state in states))
        return self._store.list_backfills(
            team_id, kind=Kind.SINK, statuses=statuses or None, limit=limit, cursor=cursor
        )

    def move(
        self, team_id: int, sink: str, uid: str, state: State, *, user_id: int | None
    ) -> CountedBackfill:
        """Pause, resume, cancel or retry; the same state again changes nothing."""
        backfill = self.get_of_sink(team_id, sink, uid)
        now = State.of(backfill.status)
        if state is now:
            return backfill
        if state not in MOVES[now]:
            raise _not_settable(now, state)
        return self._backfills.move(backfill, MOVES[now][state], self._words, user_id=user_id)

    def slices(
        self, team_id: int, sink: str, uid: str, *, limit: int | None, cursor: str | None
    ) -> Page[Slice]:
        backfill = self.get_of_sink(team_id, sink, uid)
        return self._backfills.slices(backfill, limit=limit, cursor=cursor)

    def rejects(
        self, team_id: int, sink: str, uid: str, *, limit: int | None, cursor: str | None
    ) -> Page[tuple[Slice, Reject]]:
        backfill = self.get_of_sink(team_id, sink, uid)
        return self._backfills.rejects(backfill, limit=limit, cursor=cursor)

    def _new(
        self, sink: Sink, spec: SinkSpec, request: BackfillRequest, uid: str, user_id: int | None
    ) -> NewBackfill:
        table = spec.read.name
        return NewBackfill(
            uid=uid,
            team_id=sink.team_id,
            kind=Kind.SINK,
            pipeline_id=sink.id,
            pipeline_name=sink.name,
            spec=spec,
            # the limit is the backfill's: one pack at a time keeps to it
            max_concurrent=1 if request.max_rows_per_second else None,
            reason=request.reason,
            created_user_id=user_id,
            holds=(table,),
        )

    def _new_initial(
        self,
        sink: Sink,
        database: Database,
        name: str,
        known: Table | None,
        uid: str,
        user_id: int | None,
        asked: BackfillRequest | None = None,
    ) -> NewBackfill:
        request = replace(asked or BackfillRequest(table=name), reason=INITIAL_REASON)
        table = known or self._catalogue.find_now(database, name)
        try:
            spec = self._freezer.freeze_table(sink, database, name, table, request)
        except Invalid as exc:
            # one of many: without its name nobody knows which
            fields = {
                field: [f"{name}: {problem}" for problem in problems]
                for field, problems in exc.fields.items()
            }
            raise Invalid(f"{name}: {exc.message}", fields, reason=exc.reason) from exc
        new = self._new(sink, spec, request, uid, user_id)
        return replace(new, origin=Origin.INITIAL)


def _initial_tables(selection: Selection, tables: Iterable[Table]) -> tuple[str, ...]:
    """What the selection covers, without what a table above it delivers already."""
    covered = {
        table.full_name: table
        for table in tables
        if table.kind is TableKind.TABLE and covers(selection, table.full_name)
    }
    return tuple(name for name, table in covered.items() if not covered.keys() & set(table.parents))


def _not_settable(now: State, state: State) -> Invalid:
    allowed = ", ".join(sorted(MOVES[now])) or "nothing: it is final"
    return Invalid.of(
        "state",
        f"a backfill that is {now.value} cannot be set to {state.value}; "
        f"from {now.value} it can be set to: {allowed}",
        reason="invalid_transition",
    )
