"""From what the store holds to what a task needs: options merged, tickets drawn."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from refill.connectors.contract import Connector, Context, Job
from refill.connectors.webhook import ENDPOINT, with_endpoint
from refill.domain.backfill import Backfill
from refill.domain.errors import Misconfigured, NotFound, SinkRefused, SourceRefused
from refill.domain.pipeline import Kind, Spec
from refill.domain.slice import Ticket
from refill.engine.order import WorkOrder
from refill.settings import Settings
from refill.store.port import ClaimedSlice, Pack, PipelineStore


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


class Orders:
    def __init__(
        self,
        store: PipelineStore,
        connectors: Mapping[str, Connector],
        settings: Settings,
        *,
        on_task_step: Callable[[str, int], None] | None = None,
        seconds_budget: float = 5.0,
    ) -> None:
        self._store = store
        self._connectors = connectors
        self._settings = settings
        self._on_task_step = on_task_step
        self._seconds_budget = seconds_budget

    def ends(self, backfill: Backfill) -> Ends:
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
            ),
        )

    def tickets(self, slices: Sequence[ClaimedSlice]) -> list[Ticket]:
        return [
            Ticket(
                slice_id=claimed.slice.id,
                index=claimed.slice.index,
                extent=claimed.slice.extent,
                attempt=claimed.slice.attempt,
                target=claimed.slice.target,
                fence=claimed.fence,
                nonce=secrets.token_hex(8),
            )
            for claimed in slices
        ]

    def order(self, pack: Pack, ends: Ends, tickets: Sequence[Ticket]) -> WorkOrder:
        return WorkOrder(
            pack_id=pack.id,
            job=job_of(pack.backfill),
            source_type=ends.source.type,
            source_options=ends.source_options,
            sink_type=ends.sink.type,
            sink_options=ends.sink_options,
            context=ends.context,
            tickets=tuple(tickets),
            seconds_budget=self._seconds_budget,
            max_rows_per_second=pack.backfill.spec.max_rows_per_second,
            on_step=self._on_task_step,
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
            if spec.kind is Kind.SINK:
                now = self._store.get_sink(team_id, spec.sink_id or "").destination_options
            else:
                now = self._store.get_destination(team_id, spec.destination_id or 0).options
        except NotFound as exc:
            raise SinkRefused(
                "What the backfill writes to was deleted; the backfill cannot go on."
            ) from exc
        live = {name: now[name] for name in connector.options_model.live if name in now}
        return self._with_endpoint(team_id, {**spec.sink_options, **live})

    def _with_endpoint(self, team_id: int, options: dict[str, Any]) -> dict[str, Any]:
        """An HTTP endpoint is named by the sink and looked up now, secret headers included."""
        name = options.get(ENDPOINT)
        if name is None:
            return options
        try:
            endpoint = self._store.get_endpoint(team_id, str(name))
        except NotFound as exc:
            raise SinkRefused(
                f"The HTTP endpoint {name} was deleted; the backfill cannot go on."
            ) from exc
        return with_endpoint(
            options, endpoint.url, {**endpoint.headers, **endpoint.encrypted_headers}
        )


def job_of(backfill: Backfill) -> Job:
    """Rejects are allowed per backfill: what other slices used up is not there any more."""
    spec = backfill.spec
    # as of the claim: packs that run side by side each get all of it, and may overrun it together
    left = max(0, spec.max_rejects - backfill.counters.rows_rejected)
    return Job(
        backfill_id=backfill.id,
        backfill_uid=backfill.uid,
        team_id=backfill.team_id,
        spec=spec if left == spec.max_rejects else spec.model_copy(update={"max_rejects": left}),
    )
