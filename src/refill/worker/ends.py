"""Both ends of a backfill, as they are reached now: what was frozen, with what is read live."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from refill.connectors.kit.contract import Connector, Context
from refill.domain.backfill import Backfill
from refill.domain.errors import Misconfigured, NotFound, SinkRefused, SourceRefused
from refill.domain.spec import SinkSpec, Spec
from refill.domain.stored import Stored, StoredObject
from refill.settings import Settings
from refill.store.port import PipelineStore
from refill.store.stored import find_stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Both ends of a backfill: how to open its source and its sink."""

    source: Connector
    source_options: Mapping[str, Any]
    sink: Connector
    sink_options: Mapping[str, Any]
    context: Context

    def __repr__(self) -> str:
        return f"Ends(source={self.source.type!r}, sink={self.sink.type!r})"


class EndsFinder:
    def __init__(
        self, store: PipelineStore, connectors: Mapping[str, Connector], settings: Settings
    ) -> None:
        self._store = store
        self._connectors = connectors
        self._settings = settings

    def find(self, backfill: Backfill) -> Ends:
        """What is written was frozen; how to reach both systems is looked up now, so that a
        password mended meanwhile takes effect."""
        spec = backfill.spec
        sink = self._connector(spec.sink_type)
        return Ends(
            source=self._connector(spec.database_type),
            source_options=self._source_options(backfill.team_id, spec),
            sink=sink,
            sink_options=self._sink_options(backfill.team_id, spec, sink),
            context=Context(
                team_id=backfill.team_id,
                files_root=str(self._settings.files_path),
                allow_private_hosts=self._settings.allow_private_hosts,
                allowed_networks=self._settings.allowed_networks,
                refused_networks=self._settings.refused_networks,
            ),
        )

    def _connector(self, type_name: str) -> Connector:
        if type_name not in self._connectors:
            raise Misconfigured(
                f"There is no connector {type_name!r} on this worker; bring it up to date."
            )
        return self._connectors[type_name]

    def _source_options(self, team_id: int, spec: Spec) -> Mapping[str, Any]:
        try:
            return self._store.get_database(team_id, spec.database_id).options
        except NotFound as exc:
            raise SourceRefused(
                f"The database {spec.database_name} was deleted; the backfill cannot go on."
            ) from exc

    def _sink_options(self, team_id: int, spec: Spec, connector: Connector) -> dict[str, Any]:
        try:
            if isinstance(spec, SinkSpec):
                now = self._store.get_sink(team_id, spec.sink_id).destination_options
            else:
                now = self._store.get_destination(team_id, spec.destination_id).options
        except NotFound as exc:
            raise SinkRefused(
                "What the backfill writes to was deleted; the backfill cannot go on."
            ) from exc
        live = {name: now[name] for name in connector.options_model.live if name in now}
        options = {**spec.sink_options, **live}
        return connector.resolved(options, lambda kind, name: self._find(team_id, kind, name))

    def _find(self, team_id: int, kind: Stored, id_or_name: str) -> StoredObject:
        try:
            return find_stored(self._store, kind, team_id, id_or_name)
        except NotFound as exc:
            raise SinkRefused(
                f"The {kind} {id_or_name} was deleted; the backfill cannot go on."
            ) from exc
