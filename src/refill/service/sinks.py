"""Sinks: pipelines from tables of a database to a system."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from refill.clock import Clock
from refill.connectors.kit.contract import Connector
from refill.connectors.kit.drivers import require_driver
from refill.domain.backfill import ACTIVE, Backfill, CountedBackfill, Status
from refill.domain.errors import Invalid, NotFound
from refill.domain.pipeline import (
    Condition,
    Database,
    Kind,
    Selection,
    Sink,
    SinkTable,
)
from refill.service.databases import check_name
from refill.service.options import (
    changed,
    masked,
    parse_options,
    refuse_moved_secrets,
    reveal,
)
from refill.service.paging import cut
from refill.service.references import Names, References
from refill.service.sink_backfills import SinkBackfills
from refill.service.sink_checks import SinkChecks
from refill.service.sink_freezer import BackfillRequest
from refill.store.port import Store
from refill.store.records import NewBackfill, Page


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkDraft:
    """What was asked for; None leaves a field as it is, or at its default."""

    name: str | None = None
    status: str | None = None
    database: str | None = None
    selection: Selection | None = None
    tables: tuple[SinkTable, ...] | None = None
    actions: tuple[str, ...] | None = None
    destination: Mapping[str, Any] | None = None
    batch_size: int | None = None
    filter: tuple[Condition, ...] | None = None
    transform: str | None = None
    drops_transform: bool = False
    # of filter_sql, message_path, routing and enrichment those that are given; None drops one
    forms: Mapping[str, str | None] = field(default_factory=dict)
    timestamp_format: str | None = None
    numeric_format: str | None = None
    max_retry_count: int | None = None
    max_rejects: int | None = None
    annotations: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkView:
    """A sink with what an answer says of it."""

    sink: Sink
    database_name: str
    destination: Mapping[str, Any]  # masked, with its type
    batch_size: int  # what is in use
    active_backfills: tuple[CountedBackfill, ...]
    latest: Backfill | None

    @property
    def failed(self) -> Backfill | None:
        """The last backfill, when it failed: what its health is about."""
        return self.latest if self.latest and self.latest.status is Status.FAILED else None


class Sinks:
    def __init__(
        self,
        *,
        store: Store,
        connectors: Mapping[str, Connector],
        checks: SinkChecks,
        backfills: SinkBackfills,
        references: References,
        clock: Clock,
    ) -> None:
        self._store = store
        self._connectors = connectors
        self._checks = checks
        self._backfills = backfills
        self._references = references
        self._clock = clock

    def types(self) -> tuple[Connector, ...]:
        return tuple(item for item in self._connectors.values() if item.is_sink)

    def create(
        self,
        *,
        team_id: int,
        uid: str,
        draft: SinkDraft,
        initial_backfill: bool | Sequence[BackfillRequest],
        user_id: int | None,
    ) -> SinkView:
        """`initial_backfill`: every table it covers is delivered at once, or those that are asked
        for. A request made before finds what it made."""
        sink = self._prepare(team_id=team_id, uid=uid, draft=draft)
        # before anything is stored: a table that is refused leaves no sink behind
        initial = self._prepare_initial(sink, initial_backfill, user_id)
        made = self._insert(sink)
        self._backfills.insert_initial(initial)
        return self._view(made)

    def _prepare_initial(
        self, sink: Sink, wanted: bool | Sequence[BackfillRequest], user_id: int | None
    ) -> tuple[NewBackfill, ...]:
        if isinstance(wanted, bool):
            return self._backfills.prepare_initial(sink, user_id=user_id) if wanted else ()
        return self._backfills.prepare_asked(sink, wanted, user_id=user_id)

    def _prepare(self, *, team_id: int, uid: str, draft: SinkDraft) -> Sink:
        """The sink, checked and not yet stored; the stored one for a request made before."""
        try:
            return self._store.get_sink(team_id, uid)  # the same request again
        except NotFound:
            pass
        if draft.name is None or draft.database is None or draft.destination is None:
            needed = ("name", "database", "destination")
            fields = {name: ["is required"] for name in needed if getattr(draft, name) is None}
            raise Invalid(f"required: {', '.join(fields)}", fields)
        database = self._store.get_database(team_id, draft.database)
        now = self._clock()
        blank = Sink(
            id=uid,
            team_id=team_id,
            name=draft.name,
            database_id=database.id,
            destination_type="",
            destination_options={},
            created_at=now,
            updated_at=now,
        )
        return self._applied(blank, draft, database)

    def _insert(self, sink: Sink) -> Sink:
        """What `_prepare` made; one that is stored already stays as it is."""
        try:
            return self._store.get_sink(sink.team_id, sink.id)
        except NotFound:
            return self._store.insert_sink(sink)

    def update(self, *, team_id: int, id_or_name: str, draft: SinkDraft) -> SinkView:
        """What is not given stays; running backfills go on as they were frozen."""
        sink = self.get(team_id, id_or_name)
        database = self._store.get_database(team_id, draft.database or sink.database_id)
        updated = self._applied(sink, draft, database)
        updated = dataclasses.replace(updated, updated_at=self._clock())
        return self._view(self._store.update_sink(updated))

    def get(self, team_id: int, id_or_name: str) -> Sink:
        return self._store.get_sink(team_id, id_or_name)

    def list_views(self, team_id: int, *, limit: int | None, cursor: str | None) -> Page[SinkView]:
        found = self._store.list_sinks(team_id)
        page = cut(found, lambda sink: sink.id, limit=limit, cursor=cursor)
        return Page(items=self._views(team_id, page.items), next_cursor=page.next_cursor)

    def delete(self, team_id: int, id_or_name: str) -> Sink:
        sink = self.get(team_id, id_or_name)
        self._store.delete_sink(team_id, sink.id)
        return sink

    def _view(self, sink: Sink) -> SinkView:
        return self._views(sink.team_id, (sink,))[0]

    def get_view(self, team_id: int, id_or_name: str) -> SinkView:
        return self._view(self.get(team_id, id_or_name))

    def _views(self, team_id: int, sinks: tuple[Sink, ...]) -> tuple[SinkView, ...]:
        only = sinks[0].id if len(sinks) == 1 else None
        active = self._store.list_backfills(
            team_id, kind=Kind.SINK, pipeline_id=only, statuses=ACTIVE
        ).items
        names = {database.id: database.name for database in self._store.list_databases(team_id)}
        referred = self._references.names(team_id)
        return tuple(
            SinkView(
                sink=sink,
                database_name=names.get(sink.database_id, sink.database_id),
                destination=self._shown(sink, referred),
                batch_size=self._batch_size(sink),
                active_backfills=tuple(
                    backfill for backfill in active if backfill.pipeline_id == sink.id
                ),
                latest=self._store.latest_backfill(team_id, Kind.SINK, sink.id),
            )
            for sink in sinks
        )

    def _batch_size(self, sink: Sink) -> int:
        connector = self._connectors.get(sink.destination_type)
        if sink.destination_options.get("batch") is False:
            return 1
        return sink.batch_size or (connector.default_batch_size if connector else 1)

    def _applied(self, sink: Sink, draft: SinkDraft, database: Database) -> Sink:
        """The sink with the draft over it, checked as a whole."""
        if draft.name is not None:
            check_name(draft.name)
        given = {
            name: value for name in _PLAIN_FIELDS if (value := getattr(draft, name)) is not None
        }
        if draft.transform is not None or draft.drops_transform:
            given["transform"] = draft.transform
        given |= draft.forms
        if draft.destination is not None:
            given |= self._destination(sink, draft.destination)
        applied = dataclasses.replace(sink, database_id=database.id, **given)
        self._checks.check(applied, database)
        return applied

    def _shown(self, sink: Sink, names: Names) -> dict[str, Any]:
        """The destination as it was sent, without its secrets."""
        connector = self._connectors.get(sink.destination_type)
        options = masked(connector, sink.destination_options)
        return {
            "type": sink.destination_type,
            **self._references.shown(connector, options, names),
        }

    def _destination(self, sink: Sink, sent: Mapping[str, Any]) -> dict[str, Any]:
        kind = sent.get("type", sink.destination_type)
        connector = self._find(kind) if isinstance(kind, str) else None
        if connector is None or not connector.is_sink:
            known = ", ".join(item.type for item in self.types())
            raise Invalid.of("destination.type", f"must be one of: {known}")
        require_driver(connector)
        given = {name: value for name, value in sent.items() if name != "type"}
        stored = sink.destination_options if connector.type == sink.destination_type else {}
        options = reveal(parse_options(connector, changed(stored, given), "destination."))
        kept = self._references.kept(sink.team_id, connector, options, "destination.")
        if stored:
            refuse_moved_secrets(connector, stored, kept, given, "destination.")
        return {"destination_type": connector.type, "destination_options": kept}

    def _find(self, kind: str) -> Connector | None:
        former = (item for item in self._connectors.values() if kind in item.former_types)
        return self._connectors.get(kind) or next(former, None)


_PLAIN_FIELDS = (
    *("name", "status", "selection", "tables", "actions", "batch_size", "filter"),
    *("timestamp_format", "numeric_format", "max_retry_count", "max_rejects", "annotations"),
)
